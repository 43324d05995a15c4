# SPDX-License-Identifier: BSD-3-Clause
"""The mistakes of docs/survives.md can be planted, and the tests still find them."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import mutants
import pytest
from named import MISTAKES

FOLDER = Path(__file__).parent
BUILD = Path(os.environ["PYTHONPATH"].split(os.pathsep)[0]).parent


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


def plant(*words):
    command = [sys.executable, FOLDER / "mutants.py", *words, "--build", BUILD]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["uncleared_error", "autoload_raises"])
def test_a_mistake_is_found(name):
    code, output = plant("named", name)
    assert code == 0, output
    assert output.startswith("killed") and name in output


def test_a_mistake_that_does_not_exist_is_refused():
    code, output = plant("named", "no_such")
    assert code == 1
    assert output == "There is no mistake no_such; `mutants.py list` shows all.\n"


def test_a_missing_build_is_told():
    command = [sys.executable, FOLDER / "mutants.py", "named", "--build", "/nowhere"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == (
        "There is no build in /nowhere; see docs/build.md, or name one with --build.\n"
    )


def test_a_missing_program_is_told(tmp_path):
    shadow = mutants.Shadow(BUILD, tmp_path / "shadow")
    with pytest.raises(SystemExit) as told:
        shadow.test(["tests/test-none"])
    assert str(told.value) == f"There is no {BUILD}/tests/test-none; `meson test` builds it."


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
