# SPDX-License-Identifier: BSD-3-Clause
"""The ways through the book lead to pages that there are, and their times are counted."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import reading
from docutils import nodes

DOCS = Path(__file__).parents[2] / "docs"
WAYS = re.findall(r"^```\{way\} (.*)\n([^`]*)```", (DOCS / "ways.md").read_text("utf-8"), re.M)


def test_a_page_counts_its_words_and_its_lines_of_code():
    listing = nodes.literal_block("", "\n".join(["x = 1"] * 24))
    page = nodes.section("", nodes.paragraph("", "word " * 600), listing)
    assert reading.measured(page) == 600 // 200 + 24 // 12
    assert reading.measured(nodes.section("", nodes.paragraph("", "short"))) == 1


@pytest.mark.parametrize(
    ("minutes", "words"),
    [(1, "1 minute"), (44, "44 minutes"), (80, "1.5 hours"), (900, "15 hours")],
)
def test_times_are_told_in_minutes_and_long_ones_in_hours(minutes, words):
    assert reading.told(minutes) == words


def test_every_page_that_is_read_says_what_one_can_do_afterwards():
    told = {reading.step(line).page for _, lines in WAYS for line in lines.splitlines()}
    pages = {page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")}
    assert told == pages - set(reading.LOOKED_UP)


def test_a_page_is_on_a_way_or_among_the_others():
    pages = {name: {reading.step(line).page for line in lines.splitlines()} for name, lines in WAYS}
    others = pages.pop(reading.OTHERS)
    assert not others & set().union(*pages.values())


@pytest.mark.parametrize("way", [name for name, _ in WAYS])
def test_a_way_leads_to_each_of_its_pages_once(way):
    steps = [reading.step(line) for line in dict(WAYS)[way].splitlines()]
    pages = [step.page for step in steps]
    assert pages and len(pages) == len(set(pages))
    assert all(step.able for step in steps)
    assert not all(step.may_be_skipped for step in steps)
    assert all((DOCS / f"{page}.md").is_file() for page in pages)


def test_pages_are_written_again_if_their_way_has_changed():
    env = SimpleNamespace(all_docs={"device", "hooks", "math"})
    reading.ways(env).update(one=[reading.step("device")], other=[reading.step("math")])
    assert reading.changed(None, env) == set()
    reading.ways(env)["one"] = [reading.step("hooks"), reading.step("device")]
    assert reading.changed(None, env) == {"device", "hooks"}
    reading.ways(env)["one"] = [reading.step("hooks")]
    assert reading.changed(None, env) == {"device", "hooks"}
    assert reading.changed(None, env) == set()


def test_the_pages_of_the_vendors_software_are_known_by_their_folders():
    named = {page for page in ("driver", "driver/tools", "math/plan", "orccl", "device", "drivers") if
             reading.VENDORS.match(page)}  # fmt: skip
    assert named == {"driver", "driver/tools", "math/plan", "orccl"}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("device | count", reading.Step("device", "count", False)),
        ("amp (may be skipped) | scale", reading.Step("amp", "scale", True)),
        ("hooks", reading.Step("hooks", "", False)),
    ],
)
def test_a_line_of_a_way_says_what_one_can_do_and_whether_it_may_be_skipped(line, found):
    assert reading.step(line) == found
