# SPDX-License-Identifier: BSD-3-Clause
"""The mistakes of docs/survives.md can be planted, and its table shows what was recorded."""

import ast
from pathlib import Path

import mutants
import pytest
from named import MISTAKES

FOLDER = Path(__file__).parent


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_can_be_planted(mistake):
    text = mutants.read(mutants.ROOT / mistake.file)
    changed = mutants.planted(text, mistake)
    assert changed != text
    if mistake.file.endswith(".py"):
        ast.parse(changed)
    program = mistake.test.startswith("test-")
    assert program or (mutants.ROOT / mistake.test.split("::")[0]).exists()


def test_there_are_forty_and_each_was_found():
    assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES) >= 40
    found = {line["name"]: line["result"] for line in mutants.results() if "name" in line}
    assert found == {mistake.name: "killed" for mistake in MISTAKES}


def test_a_line_that_changed_and_was_not_noticed_has_a_reason():
    for line in mutants.results():
        survived = line["result"] == "survived"
        assert survived == (len({"equivalent", "kept"} & set(line)) == 1), mutants.title(line)


def test_the_page_shows_what_was_recorded():
    assert (FOLDER / "table.txt").read_text().splitlines() == list(mutants.table())


def test_what_a_line_can_become():
    assert list(mutants.variants("  if (a < b) return;\n")) == [
        "  if (a <= b) return;\n",
        "  if (!(a < b)) return;\n",
    ]
    assert list(mutants.variants("  stream.wait(event);\n")) == ["\n"]
    assert list(mutants.variants('  // a < b, and "a < b"\n')) == []


def test_a_line_is_found_again_when_lines_before_it_came():
    mutant = {"line": 1, "old": "b();", "new": ""}
    assert mutants.changed("a();\n  b();\n", mutant) == "a();\n  \n"
    assert mutants.changed("a();\n", mutant) is None
