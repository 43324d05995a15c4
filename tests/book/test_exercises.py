# SPDX-License-Identifier: BSD-3-Clause
"""Each exercise begins in a file with the functions of its solution, and `./dev exercise` finds it."""

import ast
import os
import re
from pathlib import Path

import exercises
import pytest

ROOT = Path(__file__).parents[2]
CHAPTERS = ROOT / "chapters"
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


def test_the_first_chapters_have_such_files():
    first = set(exercises.contents.order_of_chapters(ROOT)[:2])
    assert {file.parents[1].name for file in STARTS} >= first


ALL = [
    each
    for chapter in exercises.contents.order_of_chapters(ROOT)
    for each in exercises.exercises(ROOT, chapter)
]


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.name)
def test_an_exercise_has_a_task_tests_and_hints(each):
    assert re.match(r"\*\*(Change|Extend|Open)\b", each.text)
    assert each.tests
    assert len(each.hints) >= 2
    assert each.solution.is_file()


def test_all_files_are_found_and_no_test_decides_about_two():
    assert sorted(each.start for each in ALL) == STARTS
    tests = [test for each in ALL for test in each.tests]
    assert len(tests) == len(set(tests))


def test_a_folder_with_a_space_in_its_name_is_one_folder_for_pytest(tmp_path):
    start = tmp_path / "a b/exercises/timed.py"
    one = exercises.Exercise("timed", start, "", ["test_timed.py"], [])
    assert f"pythonpath='{start.parent}'" in exercises.pytest_arguments(one)


def test_the_hints_are_for_exercises_that_exist():
    for page in CHAPTERS.glob("**/exercises/hints.md"):
        for name in re.findall(r"^## (.*)", page.read_text("utf-8"), re.MULTILINE):
            assert page.with_name(f"{name}.py").is_file()


@pytest.fixture
def desk(tmp_path):
    """A chapter with two exercises, solved once their file says so, and a reader who types."""
    said, keys = [], []

    def made(name, hints):
        file = tmp_path / "exercises" / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
        return exercises.Exercise(name, file, f"**Change.** {name}", ["a::b"], hints)

    def passes(each):
        text = each.start.read_text()
        return "solved" in text, f"the tests say {text!r}"

    def key(seconds):
        do = keys.pop(0)
        return do() if callable(do) else do

    found = [made("first", ["one", "two"]), made("second", [])]
    made_desk = exercises.Desk(found, passes, said.append, key)
    made_desk.said, made_desk.keys, made_desk.root = said, keys, tmp_path
    return made_desk


def save(file, text):
    def do():
        before = file.stat().st_mtime_ns
        file.write_text(text)
        os.utime(file, ns=(before + 1, before + 1))

    return do


def test_the_first_unsolved_exercise_is_shown(desk):
    first, second = desk.found
    assert desk.next_unsolved()[0] is first
    first.start.write_text("solved")
    assert desk.next_unsolved()[0] is second
    assert desk.said == ["first is solved."]
    assert desk.next_unsolved({"second"}) is None


def test_the_tests_run_when_the_file_is_saved_and_not_before(desk):
    first, _ = desk.found
    desk.keys += [None, save(first.start, "x = 1"), None, save(first.start, "solved")]
    assert desk.work(first) == "solved"
    assert desk.said[1:] == ["the tests say 'x = 1'"]


def test_hints_come_one_after_the_other_and_then_the_place_of_the_solution(desk):
    first, _ = desk.found
    desk.keys += ["\n", "\n", "\n", "q\n"]
    assert desk.work(first) == "end"
    assert desk.said[1:3] == ["Hint 1 of 2: one", "Hint 2 of 2: two"]
    assert desk.said[3].startswith("There is no further hint. Our solution is ")
    assert desk.said[3].endswith("solutions/first.py.")


def test_a_reader_goes_from_one_exercise_to_the_next(desk, monkeypatch):
    first, second = desk.found
    monkeypatch.setattr(exercises, "exercises", lambda root, chapter: desk.found)
    monkeypatch.setattr(exercises, "Desk", lambda *arguments: desk)
    desk.keys += ["n\n", save(second.start, "solved")]
    assert not exercises.run(desk.root, "device", None, None)
    desk.keys += [save(first.start, "solved")]
    said = []
    assert exercises.run(desk.root, "device", None, said.append)
    assert said == [
        "No exercise of device that begins in a file is left; the open ones are on its page."
    ]
    assert any("The file is exercises/second.py." in line for line in desk.said)
