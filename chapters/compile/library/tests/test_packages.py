# SPDX-License-Identifier: BSD-3-Clause
"""Whole models, compiled to programs in C++ and to packages."""

import pathlib
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from programs import PROGRAMS, branches_and_loops_are_part_of_the_program, inputs
from running import printed
from test_training import Classifier, Gpt, Images, losses
from torch._inductor import config

EXAMPLE = pathlib.Path(__file__).parents[4] / "examples/package"


@torch.library.custom_op("openreg_library_tests::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


twice.register_fake(torch.empty_like)


def every_kind_of_operator(x, words):
    image = x.view(1, 1, 8, 8).repeat(2, 3, 1, 1)
    q, k, v = x.view(1, 2, 4, 8), x.sin().view(1, 2, 4, 8), x.cos().view(1, 2, 4, 8)
    index = words[:, None].expand(3, 8)
    return (
        F.gelu(torch.addmm(x[0], x, x.t(), beta=2, alpha=0.5)),
        torch.bmm(x[None], x[None]).relu(),
        F.relu(F.conv2d(image, x.view(-1)[:54].view(2, 3, 3, 3), padding=1)),
        F.conv2d(image, x.view(-1)[:27].view(1, 3, 3, 3), x[0, :1], stride=2),
        F.scaled_dot_product_attention(q, k, v, is_causal=True),
        F.layer_norm(F.embedding(words, x), (8,)),
        x.sort(dim=1, descending=True).indices,
        x.topk(3, dim=0).values,
        x.clone().scatter_reduce_(0, index, x[:3], "amax", include_self=False),
        x.clone().scatter_(0, index, 2.5),
        x.clone().index_put_((words,), x[:3], accumulate=True),
        torch.nonzero(words > 1),
        x.to(torch.bfloat16).view(torch.int16),
        torch.cat(torch.split(twice(x), [3, 5])).cumsum(0),
        torch.fft.rfft(x).abs() * torch.linalg.inv(x + 9 * torch.eye(8, device=x.device))[0, 0],
        (x * 3).to(torch.int32) // 2,
        F.dropout(x, 0.5, training=False) + torch.tensor(3.0),
    )


def test_every_kind_of_operator_returns_what_it_returns_in_eager_mode():
    x = torch.randn(8, 8, device="openreg")
    words = torch.tensor([3, 0, 2], device="openreg")
    expected = every_kind_of_operator(x, words)
    with config.patch(cpp_wrapper=True):
        found = torch.compile(every_kind_of_operator)(x, words)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_in_cpp_returns_what_it_returns_in_eager_mode(program):
    with config.patch(cpp_wrapper=True):
        found = torch.compile(program)(*inputs())
    torch.testing.assert_close(found, program(*inputs()))


def test_branches_and_loops_are_part_of_a_program():
    with config.patch(cpp_wrapper=True):
        branches_and_loops_are_part_of_the_program()


@pytest.mark.parametrize("kind", [Classifier, Images, Gpt])
def test_a_model_learns_what_it_learns_on_the_cpu(kind):
    torch.manual_seed(0)
    model = kind()
    batch = model.batch()
    expected = losses(model, batch, "cpu", False)
    with config.patch(cpp_wrapper=True):
        found = losses(model, batch, "openreg", True)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


RUN = """
import sys, torch
saved = torch.load(sys.argv[2])
for device in ("openreg:0", "openreg:1"):
    weights, given, expected = torch.utils._pytree.tree_map(lambda t: t.to(device), saved)
    package = torch._inductor.aoti_load_package(sys.argv[1], device_index=int(device[-1]))
    package.load_constants(weights, check_full_update=True, user_managed=True)
    torch.testing.assert_close(package(given), expected)
print([name for name in sys.modules if name.startswith("torch_openreg.compile")])
"""


@pytest.mark.parametrize("kind", [Images, Gpt])
def test_a_process_without_our_compiler_runs_a_model_on_each_device(kind, tmp_path):
    torch.manual_seed(0)
    model = kind().to("openreg").eval()
    given = model.batch()[0].to("openreg")
    path, exported = str(tmp_path / "model.pt2"), torch.export.export(model, (given,))
    settings = {"aot_inductor.package_constants_in_so": False, "always_keep_tensor_constants": True}
    torch._inductor.aoti_compile_and_package(exported, package_path=path, inductor_configs=settings)
    package = torch._inductor.aoti_load_package(path)
    weights = {name: model.state_dict()[name] for name in package.get_constant_fqns()}
    torch.save((weights, given, model(given).detach()), tmp_path / "weights.pt")
    assert printed(RUN, path, tmp_path / "weights.pt") == "[]\n"


def test_a_program_without_python_runs_a_package(tmp_path):
    def output_of(*command):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    classes = output_of(sys.executable, EXAMPLE / "package.py", tmp_path)
    meson = sys.executable, "-m", "mesonbuild.mesonmain"
    output_of(*meson, "setup", tmp_path / "run", EXAMPLE)
    output_of(*meson, "compile", "-C", tmp_path / "run")
    expected = classes.strip("[]\n").replace(",", "")
    found = output_of(tmp_path / "run/run", tmp_path)
    assert found == f"openreg:0: {expected}\nopenreg:1: {expected}\n"
