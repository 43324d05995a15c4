# SPDX-License-Identifier: BSD-3-Clause
"""The sanitizer finds the race of every wrong program, and none in its right twin."""

import gc
import inspect
import re
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
import corpus
from torch.openreg import sanitizer

IDS = [program.__name__ for program, _ in corpus.PAIRS]
SENTENCES = {
    "wait": "nothing makes it wait; call wait_stream on",
    "other": "nothing makes it wait; call wait_stream on",
    "reuse": r"handed out again; call tensor\.record_stream\(\.\.\.\) with ",
    "host": r"The host (reads|writes) what .* and nothing makes it wait; synchronize",
}


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    torch.openreg.synchronize()
    sanitizer.clear()
    gc.collect()
    torch.openreg.empty_cache()


def races_of(program, right):
    torch.openreg.synchronize()
    with sanitizer.finding_races() as races:
        program(right)
        torch.openreg.synchronize()
        return races()


def line_of(program, mark):
    lines, start = inspect.getsourcelines(program)
    [offset] = [i for i, line in enumerate(lines) if line.rstrip().endswith(f"# {mark}")]
    return f"{corpus.__file__}:{start + offset}"


@pytest.mark.parametrize("program, edge", corpus.PAIRS, ids=IDS)
def test_the_wrong_program_has_its_race_and_the_missing_edge(program, edge):
    races = races_of(program, right=False)
    lines = [(race.first.line, race.second.line) for race in races]
    assert (line_of(program, "first"), line_of(program, "second")) in lines
    for race in races:
        assert re.search(SENTENCES[edge], race.sentence)


@pytest.mark.parametrize("program, edge", corpus.PAIRS, ids=IDS)
def test_the_right_program_has_none(program, edge):
    assert races_of(program, right=True) == []


def test_each_line_of_the_corpus_that_is_marked_is_the_one_that_races():
    assert len(corpus.PAIRS) >= 50
    for program, edge in corpus.PAIRS:
        assert edge in SENTENCES
        assert line_of(program, "first") != line_of(program, "second")
