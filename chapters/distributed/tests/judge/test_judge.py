# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own tests of process groups pass on our device, but for those in a list."""

from pathlib import Path

import judge
import pytest

# A line for each test that does not pass: its name and why.
LINES = Path(__file__).with_name("expected.txt").read_text("utf-8").splitlines()
EXPECTED = dict(line.split(": ", 1) for line in LINES)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return judge.judge(4, judge.all_names(), tmp_path_factory.mktemp("judge"))


def test_all_tests_pass_but_those_in_the_list(found):
    others = {name: end for name, end in found.items() if end[0] != "pass"}
    assert {name: end for name, end in others.items() if name not in EXPECTED} == {}
    certain = {name for name, why in EXPECTED.items() if not why.startswith("by chance")}
    assert sorted(certain - set(others)) == [], "these pass now; take them from the list"


def test_no_test_hangs_or_crashes(found):
    assert [name for name, (result, _) in found.items() if result in ("hang", "crash")] == []


def test_at_least_225_tests_pass(found):
    assert sum(result == "pass" for result, _ in found.values()) >= 225
