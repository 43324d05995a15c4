# SPDX-License-Identifier: BSD-3-Clause
"""The exercises of a chapter: where each begins, what its page says, its tests and its hints."""

from __future__ import annotations

import ast
import re
import select
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import contents

KEYS = "Press Enter for a hint, n and Enter for the next exercise, q and Enter to end."
SECONDS_BETWEEN_LOOKS = 0.3


@dataclass
class Exercise:
    name: str
    start: Path
    text: str
    tests: list[str]
    hints: list[str]

    @property
    def solution(self) -> Path:
        return self.start.parents[1] / "solutions" / self.start.name


def exercises(root: Path, chapter: str) -> list[Exercise]:
    """In the order in which the pages tell them."""
    pages = contents.pages_of_chapter(root, chapter)
    told = [paragraph for page in pages for paragraph in contents.text_of(page).split("\n\n")]
    found = []
    for start in sorted((root / "chapters" / chapter).glob("**/exercises/*.py")):
        named = (n for n, text in enumerate(told) if re.search(rf"\b{start.name}`", text))
        place = next((n for n in named if told[n].startswith("**")), len(told))
        text = "\n".join(told[place : place + 1])
        found.append((place, Exercise(start.stem, start, text, tests_of(start), hints_of(start))))
    return [exercise for _, exercise in sorted(found, key=lambda pair: (pair[0], pair[1].name))]


def hints_of(start: Path) -> list[str]:
    page = contents.text_of(start.with_name("hints.md"))
    section = re.search(rf"^## {start.stem}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    items = re.split(r"^\d+\. ", section[1], flags=re.MULTILINE)[1:] if section else []
    return [" ".join(item.split()) for item in items]


def tests_of(start: Path) -> list[str]:
    """The tests that decide: those that import the module, or use what the file took from it."""
    others = {file.stem for file in start.parent.glob("*.py")} - {start.stem}
    found = []
    for file in sorted((start.parents[1] / "solutions").glob("test_*.py")):
        tree = ast.parse(file.read_text("utf-8"))
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        names = set(imported_from(tree.body, start.stem))
        # A test may use it through other functions of its file.
        for _ in functions:
            names |= {function.name for function in functions if names & used_in(function)}
        for function in functions:
            inside = [node for node in ast.walk(function) if node is not function]
            own = any(imported_from(inside, start.stem))
            foreign = any(any(imported_from(inside, other)) for other in others)
            if function.name.startswith("test_") and (
                own or (function.name in names and not foreign)
            ):
                found.append(f"{file}::{function.name}")
    return found


def used_in(function: ast.FunctionDef) -> set[str]:
    return {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}


def imported_from(nodes, module: str):
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module == module:
            yield from (alias.asname or alias.name for alias in node.names)
        if isinstance(node, ast.Import):
            yield from (alias.asname or alias.name for alias in node.names if alias.name == module)


def pytest_arguments(exercise: Exercise, tests: list[str] | None = None) -> list[str]:
    """The reader's file is found before our solution of the same name."""
    options = ["-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "--import-mode=append"]
    folder = shlex.quote(str(exercise.start.parent))
    return [*options, "-o", f"pythonpath={folder}", *(tests or exercise.tests)]


class Desk:
    """Where a reader works on exercises: shows one, tests it on every save, gives hints.

    `passes` runs the tests of an exercise, and returns whether they pass and what they printed.
    `key` waits for some seconds and returns the line that the reader has typed, or None.
    """

    def __init__(self, found: list[Exercise], passes, say, key=None):
        self.found, self.passes, self.say = found, passes, say
        self.key = key or typed_within
        self.given: dict[str, int] = {}

    def next_unsolved(self, skipped=()) -> tuple[Exercise, str] | None:
        """The first exercise whose tests fail, and what they printed."""
        for exercise in self.found:
            if exercise.name in skipped:
                continue
            passed, output = self.passes(exercise)
            if not passed:
                return exercise, output
            self.say(f"{exercise.name} is solved.")
        return None

    def show(self, exercise: Exercise, root: Path) -> None:
        self.say(f"{exercise.text}\n\nThe file is {exercise.start.relative_to(root)}.")

    def hint(self, exercise: Exercise) -> None:
        number = self.given.get(exercise.name, 0)
        self.given[exercise.name] = number + 1
        if number < len(exercise.hints):
            self.say(f"Hint {number + 1} of {len(exercise.hints)}: {exercise.hints[number]}")
        else:
            self.say(f"There is no further hint. Our solution is {exercise.solution}.")

    def work(self, exercise: Exercise) -> str:
        """Until it is solved, or the reader leaves it: `solved`, `next` or `end`."""
        self.say(f"Its tests run whenever you save the file. {KEYS}")
        seen = exercise.start.stat().st_mtime_ns
        while True:
            typed = self.key(SECONDS_BETWEEN_LOOKS)
            if typed is not None and typed.strip() in ("q", "n"):
                return {"q": "end", "n": "next"}[typed.strip()]
            if typed is not None:
                self.hint(exercise)
            saved = exercise.start.stat().st_mtime_ns
            if saved != seen:
                seen = saved
                passed, output = self.passes(exercise)
                if passed:
                    return "solved"
                self.say(output)


def typed_within(seconds: float) -> str | None:
    """A line that the reader has typed; `q` at the end of the input."""
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    return (sys.stdin.readline() or "q") if ready else None


def run(root: Path, chapter: str, passes, say, watch: bool = True, key=None) -> bool:
    """Whether no exercise of the chapter is left. With `watch`, waits for the reader to solve them."""
    desk = Desk(exercises(root, chapter), passes, say, key)
    skipped: set[str] = set()
    while found := desk.next_unsolved(skipped):
        exercise, output = found
        if not watch:
            say(output)
        desk.show(exercise, root)
        how = desk.work(exercise) if watch else "end"
        if how == "end":
            return False
        if how == "next":
            skipped.add(exercise.name)
    if not skipped:
        say(
            f"No exercise of {chapter} that begins in a file is left; the open ones are on its page."
        )
    return not skipped
