# SPDX-License-Identifier: BSD-3-Clause
"""What `import torch` does with us, and what switches it off."""

import pytest
from fresh import PACKAGE, USE, install, run


@pytest.fixture(scope="module")
def switched():
    """What a program says that imports only torch, by the value of the switch."""
    program = f"import sys, torch; print(*sys.modules); {USE}"
    values = (None, "1", "0", "true", "")
    return {value: run("-c", program, TORCH_DEVICE_BACKEND_AUTOLOAD=value) for value in values}


@pytest.mark.parametrize("value", [None, "1"])
def test_importing_torch_is_enough(switched, value):
    assert switched[value].stdout.endswith("\nfine\n")
    assert switched[value].stderr == ""


@pytest.mark.parametrize("value", ["0", "true", ""])
def test_only_unset_or_1_switches_backends_on(switched, value):
    assert "Expected one of cpu" in switched[value].stderr


def test_importing_torch_imports_nothing_more_than_us(switched):
    with_us, without = (switched[value].stdout.splitlines()[0].split() for value in (None, "0"))
    more = {name for name in with_us if not name.startswith(("torch_openreg", "torch.openreg"))}
    assert more - set(without) == set()


@pytest.mark.parametrize("first", ["torch", "torch_openreg"])
def test_a_backend_that_is_loaded_after_us_finds_the_device(tmp_path, first):
    path = [PACKAGE.parent, install(tmp_path, "later", f"import torch\n{USE}")]
    result = run("-c", f"import {first}", path=path)
    assert (result.stdout, result.stderr) == ("fine\n", "")


def test_the_package_can_be_loaded_again_but_not_from_nothing():
    program = (
        "import importlib, sys, torch, torch_openreg\n"
        "assert importlib.reload(torch_openreg) is torch.openreg\n"
        "for name in vars(torch_openreg).keys() - {'__name__', '__loader__'}:\n"
        "    delattr(torch_openreg, name)\n"  # So does IPython's autoreload.
        "assert importlib.reload(torch_openreg) is torch.openreg\n"
        f"{USE}\n"
        "del sys.modules['torch_openreg']\n"
        "import torch_openreg"
    )
    result = run("-c", program)
    assert result.stdout == "fine\n"
    sentence = "torch_openreg was removed from sys.modules; PyTorch still has it, as torch.openreg,"
    assert f"ImportError: {sentence} and" in result.stderr
    assert result.stderr.endswith("start Python anew\n")
