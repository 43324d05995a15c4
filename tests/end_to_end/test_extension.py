# SPDX-License-Identifier: BSD-3-Clause
"""Somebody else's kernel, built with what the build tree offers."""

import pathlib
import subprocess
import sys

import pytest
import torch

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples/extension"
LIBRARY = "libacme.so"


@pytest.fixture(scope="module")
def acme(tmp_path_factory):
    folder = tmp_path_factory.mktemp("acme")
    for step in (["setup", folder, EXAMPLE], ["compile", "-C", folder]):
        done = subprocess.run(
            [sys.executable, "-m", "mesonbuild.mesonmain", *step], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
    torch.ops.load_library(folder / LIBRARY)
    return folder / LIBRARY


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_kernel_from_outside_runs_on_the_device(acme, dtype):
    gate, up = torch.randn(2, 30, 50).to(dtype)
    expected = torch.nn.functional.silu(gate.double()) * up.double()
    with torch.openreg.fallback("error"):
        here = torch.ops.acme.swiglu(gate.t().to("openreg"), up.to("openreg").t())
    torch.testing.assert_close(here.cpu(), expected.t().to(dtype))


def test_pytorch_approves_of_it(acme):
    arguments = torch.randn(2, 3, 4, device="openreg").unbind()
    checks = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    torch.library.opcheck(torch.ops.acme.swiglu.default, arguments, test_utils=checks)


def test_it_refuses_as_our_own_do(acme):
    x = torch.ones(2, device="openreg")
    with pytest.raises(RuntimeError, match="swiglu: Expected all tensors to be on the same device"):
        torch.ops.acme.swiglu(x, x.to("openreg:1"))
    with pytest.raises(
        ValueError, match=r"swiglu needs two tensors of one size and type; they are of \[2\] Float"
    ):
        torch.ops.acme.swiglu(x, x.half())
    with pytest.raises(TypeError, match="swiglu computes reals of 16, 32 and 64 bits, not Int"):
        torch.ops.acme.swiglu(x.int(), x.int())


def test_its_example_says_that_nothing_fell_back(acme):
    done = subprocess.run(
        [sys.executable, EXAMPLE / "demo.py", acme], capture_output=True, text=True
    )
    assert done.stdout == "torch.Size([4, 8])\n{}\n", done.stderr
