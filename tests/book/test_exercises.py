# SPDX-License-Identifier: BSD-3-Clause
"""Each exercise begins in a file with the functions that its solution has, and nothing in them."""

import ast
from pathlib import Path

import pytest

CHAPTERS = Path(__file__).parents[2] / "chapters"
STARTS = sorted(CHAPTERS.glob("**/exercises/*.py"))


def functions(file):
    """The name and the arguments of each function, with the class around it."""
    tree = ast.parse(file.read_text("utf-8"))
    for scope in [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]:
        for node in scope.body:
            if isinstance(node, ast.FunctionDef):
                yield getattr(scope, "name", ""), node.name, ast.unparse(node.args), node.body


@pytest.mark.parametrize("start", STARTS, ids=lambda file: file.stem)
def test_an_exercise_begins_with_the_functions_of_its_solution(start):
    solution = start.parents[1] / "solutions" / start.name
    assert [f[:3] for f in functions(start)] == [f[:3] for f in functions(solution)]
    assert all(isinstance(body[-1], ast.Raise) for *_, body in functions(start))


def test_chapters_device_and_hooks_have_such_files():
    assert {file.parents[1].name for file in STARTS} >= {"device", "hooks"}
