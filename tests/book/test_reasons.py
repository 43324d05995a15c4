# SPDX-License-Identifier: BSD-3-Clause
"""A page of a chapter that shows code asks before it answers, and ends with what must hold."""

import re
from pathlib import Path

import contents
import pytest
from listings import fences

ROOT = Path(__file__).parents[2]
PAGES = [
    page
    for chapter in contents.order_of_chapters(ROOT)
    for page in contents.pages_of_chapter(ROOT, chapter)
]
QUESTION = re.compile(r"\*\*Predict, then read\b[^?]*\?", re.DOTALL)
RULES = re.compile(r"(?:^## What must now always hold$|\bmust now always hold:)(.*?)(?=^## |\Z)", re.M | re.S)  # fmt: skip
NAMED = re.compile(r"`(test_\w+|[A-Z]\w+\.[a-z]\w+_\w+)(?:\[(\w+)\])?`")


def name_of(page):
    return page.relative_to(ROOT / "docs").as_posix()


def shows(page):
    """How many passages a page shows."""
    found = fences(page.read_text("utf-8").splitlines())
    return sum(line.startswith(":passage:") for _, _, body in found for line in body)


WITH_CODE = [page for page in PAGES if shows(page) > 1]


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_a_page_asks_a_question_before_a_listing(page):
    assert QUESTION.search(page.read_text("utf-8"))


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_a_page_says_what_must_hold_and_names_the_tests(page):
    rules = "".join(RULES.findall(page.read_text("utf-8")))
    assert re.search(r"\btest_\w+|`\w+\.\w+`", rules)


@pytest.fixture(scope="module")
def tests():
    """The names of all tests, and of what their parameters may be named after."""
    found = set()
    for file in (f for top in ("chapters", "tests", "examples") for f in (ROOT / top).rglob("*.*")):
        if file.suffix == ".py":
            found |= set(re.findall(r"^def (\w+)", file.read_text("utf-8"), re.M))
        elif file.suffix == ".cpp":
            for suite, name in re.findall(
                r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", file.read_text("utf-8"), re.M
            ):
                found.add(f"{suite}.{name}")
    return found


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_each_test_that_the_rules_name_exists(page, tests):
    named = NAMED.findall("".join(RULES.findall(page.read_text("utf-8"))))
    assert {name for pair in named for name in pair if name} - tests == set()
