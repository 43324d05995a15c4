# SPDX-License-Identifier: BSD-3-Clause
"""The numbers of the front page are those of the files that they name."""

import subprocess
import sys
from pathlib import Path

import figures

ROOT = Path(__file__).parents[2]


def test_the_lines_shown_are_those_that_the_passages_check_counts():
    check = [sys.executable, ROOT / "tools/passages.py"]
    said = subprocess.run(check, capture_output=True, text=True, check=True).stdout
    assert f"{figures.lines_of_code()[0]} lines shown" in said


def test_each_number_is_positive_and_names_files_that_exist():
    for number, what, sources in figures.figures():
        assert int(number.split()[0].replace(",", "")) > 0, what
        for source in sources.split(", "):
            assert source.startswith("./dev") or list(ROOT.glob(source)), source


def test_every_file_in_which_an_exercise_begins_is_counted():
    small, every = figures.exercises_with_files()
    assert 0 < small < every == len(list(ROOT.glob("chapters/**/exercises/*.py")))


def test_an_operator_with_several_lines_counts_once(tmp_path, monkeypatch):
    listed = tmp_path / "tests/conformance/expected.txt"
    listed.parent.mkdir(parents=True)
    listed.write_text("# a, values: no\nsparse.mm, values: b\nsparse.mm, views: b\nc, errors: d\n")
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    assert (figures.differences(), figures.differences("values")) == (2, 1)
