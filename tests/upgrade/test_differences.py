# SPDX-License-Identifier: BSD-3-Clause
"""What differs between the supported releases of PyTorch, and for how long we must know it."""

import re
from pathlib import Path

import differences
import find_torch
import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]

ALL = differences.all_differences()
SUPPORTED = find_torch.supported()


def number(release):
    return tuple(map(int, release.split(".")[:2]))


def files():
    folders = ("chapters", "common", "python", "tests", "tools")
    found = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.*")))
    wanted = (".py", ".cpp", ".h", ".csv", ".txt")
    return {str(p.relative_to(ROOT)): p.read_text("utf-8") for p in found if p.suffix in wanted}


@pytest.mark.parametrize("name", ALL)
def test_a_difference_is_still_needed_by_a_supported_release(name):
    since = number(ALL[name].since)
    assert SUPPORTED[0] < since, (
        f"every supported release has {name}: delete it, and what stands where it is false"
    )
    assert since <= SUPPORTED[-1]


@pytest.mark.parametrize("name", ALL)
def test_the_feature_is_there_in_the_release_that_brought_it_and_in_all_later_ones(name):
    assert bool(ALL[name]) == (number(torch.__version__) >= number(ALL[name].since))


@pytest.mark.parametrize("name", ALL)
def test_something_asks_for_a_difference(name):
    asking = [path for path, text in files().items() if f"differences.{name}" in text]
    assert asking, f"nothing uses differences.{name}; delete it"


def test_what_the_code_says_of_a_release_is_in_the_list():
    listed = {(each.since, each.change) for each in ALL.values()}
    said = set()
    for path, text in files().items():
        if path.endswith((".cpp", ".h")):
            text = re.sub(r"\s*\n\s*///?\s*", " ", text)
            said.update(re.findall(r"[Ss]ince (\d\.\d+), (pytorch/pytorch#\d+)", text))
    assert said <= listed
    assert len(said) >= 2
