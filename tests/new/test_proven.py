# SPDX-License-Identifier: BSD-3-Clause
"""A backend that `./dev new` made is built, installed where nothing of ours is, and used."""

import sys
from pathlib import Path

import pytest
from new_backend import OLD, make

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/install"))
from test_install import fresh_environment, pip, run  # noqa: E402

NAME = "accinte" if OLD != "accinte" else "mynpu"
# The usage example of the reference backend's README, as it stands there.
USAGE = """\
import torch

if not torch.accinte.is_available():
    print("AccInte backend is not available in this build.")
    exit()

print("AccInte backend is available!")

device = torch.device("accinte")

x = torch.tensor([[1., 2.], [3., 4.]], device=device)
y = x + 2
print("Result y:\\n", y)
print(f"Device of y: {y.device}")

z = y.cpu()
print("Result z:\\n", z)
print(f"Device of z: {z.device}")
"""
PRINTED = """\
AccInte backend is available!
Result y:
 tensor([[3., 4.],
        [5., 6.]], device='accinte:0')
Device of y: accinte:0
Result z:
 tensor([[3., 4.],
        [5., 6.]])
Device of z: cpu
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """A Python that has torch, and the new backend from its wheel."""
    folder = tmp_path_factory.mktemp("new")
    make(NAME, folder / "tree")
    python = fresh_environment(folder / "environment")
    pip(sys.executable, "wheel", "--no-build-isolation", "--no-deps", "-w", folder, folder / "tree")
    pip(python, "install", "--no-deps", next(folder.glob("*.whl")))
    return python


def test_a_new_backend_runs_the_usage_example(python, tmp_path):
    usage, printed = (text.replace("accinte", NAME) for text in (USAGE, PRINTED))
    assert run(python, "-c", usage, cwd=tmp_path) == printed


def test_nothing_of_the_old_name_is_installed_with_it(python, tmp_path):
    program = "import sys, torch; print(*sys.modules)"
    modules = run(python, "-c", program, cwd=tmp_path).split()
    assert f"torch_{NAME}" in modules
    assert not [module for module in modules if OLD in module]
