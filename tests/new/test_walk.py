# SPDX-License-Identifier: BSD-3-Clause
"""The whole way of a vendor, as the pages type it: from a bare tree to an own kernel in a wheel.

The driver is the first driver of the book, in the place of the one that is to be written.
"""

import re
import sys
from pathlib import Path

import pytest
from new_backend import make

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/install"))
from test_install import fresh_environment, pip, run  # noqa: E402
from test_path import NAME, PLAN, consoles, rows_of_the_plan, typed  # noqa: E402

KERNEL = "docs/your_first_kernel.md"
MONDAY = "docs/monday.md"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A new tree, built as the page of the first kernel says: without any kernel."""
    folder = tmp_path_factory.mktemp("walk") / NAME
    make(NAME, folder, bare=True)
    (folder / ".venv").symlink_to(sys.prefix)
    for command, _ in consoles(folder, KERNEL)[:2]:
        typed(folder, command)
    return folder


@pytest.fixture(scope="module")
def with_kernel(tree):
    """The same, after the rows of the plan: with a kernel of one's own."""
    for command, _ in consoles(tree, KERNEL)[3:5]:
        typed(tree, command)
    return tree


# In this order, because one build folder goes from step to step.


def test_the_plan_and_the_first_kernel_configure_the_same_build(tree):
    assert consoles(tree, PLAN)[0] == consoles(tree, KERNEL)[0]


def test_everything_falls_back_as_the_page_prints(tree):
    command, printed = consoles(tree, KERNEL)[2]
    assert typed(tree, command) == printed


def test_each_row_of_the_plan_passes(tree):
    rows = list(rows_of_the_plan(tree))
    assert len(rows) == 8
    for row in rows:
        assert "Ok:" in typed(tree, row), row


def test_the_own_kernel_leaves_the_report(with_kernel):
    command, printed = consoles(with_kernel, KERNEL)[5]
    assert typed(with_kernel, command) == printed


def test_the_judge_finds_nothing_wrong_with_the_kernel(with_kernel):
    command, _ = consoles(with_kernel, KERNEL)[6]
    assert command.endswith("-m torch_NAME.conformance --only add".replace("NAME", NAME))
    typed(with_kernel, command)


OWN_CONVERSION = """\
#include "torch_openreg/chapters/operators/minimal/copy_kernel.h"
#include "torch_openreg/examples/fallback/conversion.h"

#include <cstdio>

namespace openreg {

void launchConversion(const at::Tensor& to, const at::Tensor& from) {
  std::puts("mine");
  convertByFallback(to, from);
}

}  // namespace openreg
"""


def test_a_conversion_of_ones_own_takes_the_place_of_the_fallback(with_kernel):
    mine = with_kernel / "examples/mine"
    mine.mkdir()
    (mine / "copy_kernel.cpp").write_text(OWN_CONVERSION.replace("openreg", NAME))
    [_, statements] = re.findall(r"```meson\n(.*?)```", (with_kernel / KERNEL).read_text(), re.S)
    (mine / "meson.build").write_text(statements.replace("'add.cpp'", "'../own/add.cpp'"))
    for command, _ in consoles(with_kernel, KERNEL)[3:5]:
        typed(with_kernel, command.replace("examples/own", "examples/mine"))
    program = f"import torch; print(torch.ones(3, device='{NAME}').double().tolist())"
    [command, _] = consoles(with_kernel, KERNEL)[5]
    command = f'{command.partition(" -c ")[0]} -c "{program}"'
    assert typed(with_kernel, command) == "mine\n[1.0, 1.0, 1.0]\n"


def test_the_wheel_works_where_nothing_else_of_the_tree_is(with_kernel, tmp_path):
    command, _ = consoles(with_kernel, KERNEL)[7]
    assert "pip wheel" in command
    typed(with_kernel, command)
    python = fresh_environment(tmp_path / "environment")
    [wheel] = (with_kernel / "wheels").glob("*.whl")
    pip(python, "install", "--no-deps", wheel)
    program = f"import torch; x = torch.ones(3, device='{NAME}'); print((x + 2).tolist())"
    loads = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}
    assert run(python, "-c", program, cwd=tmp_path, env=loads) == "[3.0, 3.0, 3.0]\n"


def test_the_book_of_the_tree_builds_without_a_warning(with_kernel):
    typed(with_kernel, ".venv/bin/ninja -C build book")


def test_the_kernels_of_another_compiler_pass_their_tests(with_kernel):
    # In the same build folder, so that only what differs is compiled.
    commands = [command for command, _ in consoles(with_kernel, MONDAY)[:3]]
    assert commands[2].endswith("meson test -C build-compiled own-python")
    for command in commands:
        command = command.replace("setup build-compiled", "setup --reconfigure build-compiled")
        typed(with_kernel, command.replace("build-compiled", "build"))
