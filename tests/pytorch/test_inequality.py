# SPDX-License-Identifier: BSD-3-Clause
"""The tables of docs/inequality.md are what PyTorch does, and a release that changes a row is noticed."""

import re
from pathlib import Path

import inequality
import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]

RECORDED = (ROOT / "docs/inequality.txt").read_text()


@pytest.fixture(scope="module")
def found():
    return inequality.results()


def test_every_row_is_as_the_table_says(found):
    assert not list(inequality.surprises(found))


def test_the_page_has_what_the_tool_prints(found):
    release = re.match(r"The results are those of torch ([\d.]+)\.", RECORDED)[1]
    if release != torch.__version__.split("+")[0]:
        pytest.skip(f"the page was recorded with torch {release}")
    again = "meson devenv -C build -w . python tools/inequality.py > docs/inequality.txt"
    assert inequality.table(found) == RECORDED, f"record the page again: {again}"


def test_the_page_counts_its_rows(found):
    said = re.search(r"All (\d+) rows", (ROOT / "docs/inequality.md").read_text())[1]
    assert int(said) == len(found)


def test_names_of_rows_are_unique(found):
    names = [each.name for each, _, _ in found]
    assert len(names) == len(set(names))


def surprise(probe, quote="", mended=""):
    probe.__module__ = "inequalities.tensors"
    changed = inequality.Row("x", "torch/version.py", quote, "", "", probe, "accepted", mended)
    (sentence,) = inequality.surprises([(changed, *changed.observe())])
    return sentence.replace(torch.__version__.split("+")[0], "VERSION")


def test_a_row_that_was_mended_is_reported():
    def probe():
        return "accepted"

    assert surprise(probe) == (
        "tensors.probe is equal with torch VERSION: CUDA gets 'accepted', openreg 'accepted'; "
        "say so in tools/inequalities/tensors.py."
    )


def test_a_row_that_should_be_mended_is_reported():
    def probe():
        return "refused"

    sentence = (
        "tensors.probe is unequal with torch VERSION: CUDA gets 'accepted', openreg 'refused'"
    )
    assert surprise(probe, mended="2.1").startswith(sentence)


def test_a_line_that_is_gone_is_reported():
    def probe():
        return "refused"

    assert surprise(probe, quote="no such line") == (
        "tensors.probe: torch VERSION no longer has 'no such line' in torch/version.py."
    )


def test_a_reproducer_that_fails_is_reported(monkeypatch):
    def probe():
        raise KeyError("gone")

    probe.__module__ = "inequalities.tensors"
    row = inequality.Row("x", "torch/version.py", "", "", "", probe, "accepted")
    monkeypatch.setattr(inequality, "rows", lambda: [row])
    (sentence,) = inequality.surprises(inequality.results())
    assert re.fullmatch(
        "tensors.probe: the reproducer failed with torch .*: KeyError: 'gone'", sentence
    )
