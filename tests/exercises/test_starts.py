# SPDX-License-Identifier: BSD-3-Clause
"""The tests of an exercise fail where it begins, because something is not implemented yet."""

import ast
import functools
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import exercises
import pytest

ROOT = Path(__file__).parents[2]

ALL = [
    each
    for chapter in exercises.contents.order_of_chapters(ROOT)
    for each in exercises.exercises(ROOT, chapter)
]


@functools.cache
def failures(folder):
    """Why each test of the exercises in a folder fails, by name; nothing for one that passes."""
    here = [each for each in ALL if each.start.parent == folder]
    tests = [test for each in here for test in each.tests]
    with tempfile.TemporaryDirectory() as reports:
        report = Path(reports, "report.xml")
        options = [*exercises.pytest_arguments(here[0], tests), f"--junitxml={report}"]
        subprocess.run([sys.executable, "-m", "pytest", *options], cwd=ROOT, capture_output=True)
        cases = ElementTree.parse(report).iter("testcase")
        return {
            case.get("name"): "".join("".join(end.itertext()) for end in case.iter("failure"))
            for case in cases
        }


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.name)
def test_an_exercise_is_not_solved_at_its_beginning(each):
    found = failures(each.start.parent)
    names = {test.split("::")[-1] for test in each.tests}
    ends = {name: why for name, why in found.items() if name.split("[")[0] in names}
    assert len(ends) >= len(names)
    assert [name for name, why in ends.items() if not why] == []
    assert any("NotImplementedError" in why for why in ends.values())


def names_of_exercises(test_file):
    """The names that a file of tests imports from the exercises of its folder, and from which."""
    modules = {each.start.stem for each in ALL}
    return {
        name.name: node.module
        for node in ast.parse(test_file.read_text()).body
        if isinstance(node, ast.ImportFrom) and node.module in modules
        for name in node.names
    }


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.name)
def test_an_exercise_can_be_solved_before_the_others(each):
    for test in each.tests:
        path, name = re.split("::", test)[0], re.split(r"::|\[", test)[1]
        tests = ROOT / path
        if tests.suffix != ".py":
            continue
        [function] = [
            node
            for node in ast.walk(ast.parse(tests.read_text()))
            if isinstance(node, ast.FunctionDef) and node.name == name
        ]
        used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        others = {n: m for n, m in names_of_exercises(tests).items() if m != each.start.stem}
        assert used.isdisjoint(others), f"{name} needs {used & set(others)} of another exercise"
