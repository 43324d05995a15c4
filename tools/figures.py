# SPDX-License-Identifier: BSD-3-Clause
"""The numbers of the front page, counted in the files that decide about them."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import contents
import exercises
import passages

ROOT = Path(__file__).resolve().parents[1]
EXPECTED = "tests/conformance/expected*.txt"
NEEDED = "tests/models/operators.csv"
TESTS = {
    ".py": re.compile(r"^def test_", re.MULTILINE),
    ".cpp": re.compile(r"^TEST(_F|_P)?\(", re.M),
}


def lines_of_code():
    """How many lines of code the pages show, and how many there are."""
    book = passages.Book(ROOT)
    return book.shown, book.lines


def tests():
    """The test functions of the repository; one with parameters counts once."""
    files = [
        file for top in ("tests", "chapters", "examples") for file in (ROOT / top).rglob("*.*")
    ]
    return sum(
        len(TESTS[file.suffix].findall(file.read_text("utf-8")))
        for file in files
        if file.suffix in TESTS
    )


def rows_that_are_tests():
    """The rows of the error ladder and of the tables in files that a test reads."""
    ladder = (ROOT / "docs/ladder.md").read_text("utf-8")
    tables = [file for top in ("tests", "chapters") for file in (ROOT / top).rglob("*.csv")]
    rows = sum(len(list(csv.reader(file.open(encoding="utf-8")))) - 1 for file in tables)
    return rows + len(re.findall(r"^\| `", ladder, re.MULTILINE))


def programs_that_are_replayed():
    """The programs whose printed text is a file beside them."""
    chapters = (ROOT / "chapters").rglob("*.txt")
    return sum(any(file.with_suffix(s).exists() for s in (".py", ".sh")) for file in chapters)


def differences(question=""):
    """How many operators differ from the CPU's in a case, by the lists that tests hold exact."""
    texts = [file.read_text("utf-8") for file in ROOT.glob(EXPECTED)]
    return len(set(re.findall(rf"^(?!#)([\w.]+), {question}", "\n".join(texts), re.MULTILINE)))


def models():
    """How many models are trained, and how many kernels they need."""
    with (ROOT / NEEDED).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return max(int(row["Models"]) for row in rows), len(rows)


def exercises_with_files():
    """How many exercises take ten minutes, and how many there are; each begins in a file."""
    chapters = contents.order_of_chapters(ROOT)
    found = [each for chapter in chapters for each in exercises.exercises(ROOT, chapter)]
    small = [each for each in found if re.match(r"\*\*Change \((10|ten) minutes\)", each.text)]
    return len(small), len(found)


def figures():
    """Each number with what it counts and the file or command that it comes from.

    A tree that ends at an early chapter lacks some of the files, and then the number.
    """
    shown, all_lines = lines_of_code()
    found = [
        (f"{shown:,} of {all_lines:,}", "lines of code are on these pages", "tools/passages.py"),
        (f"{tests():,}", "test functions", "./dev test --all"),
        (
            f"{rows_that_are_tests() + programs_that_are_replayed():,}",
            "rows of tables and programs on these pages that a test repeats",
            "docs/ladder.md, tests/*/*.csv, chapters/*/session.py",
        ),
    ]
    small, all_exercises = exercises_with_files()
    if small:
        what = f"exercises with a file to begin in, hints, tests and a solution; {small} take ten minutes"
        found.append((f"{all_exercises}", what, "./dev exercise CHAPTER"))
    if count := differences():
        what = (
            "operators of PyTorch's own database differ from the CPU's in some case, such as an "
            "error that is told late"
        )
        if not differences("values"):
            what += ", and none in its results"
        found.append((f"{count}", what, EXPECTED))
    if (ROOT / NEEDED).exists():
        trained, kernels = models()
        what = f"models train with the CPU's losses and gradients; they need {kernels} kernels"
        found.append((f"{trained}", f"{what} and no fallback", NEEDED))
    return found


if __name__ == "__main__":
    for number, what, source in figures():
        print(f"{number:>16}  {what} ({source})")
