# SPDX-License-Identifier: BSD-3-Clause
"""The table of chapter operators: what each operator of the minimal set is for."""

import csv
import re
import signal
from pathlib import Path

import asking
import pytest
import torch

HERE = Path(__file__).parent
ROWS = list(csv.reader((HERE / "minimal_set.csv").open(encoding="utf-8")))[1:]


def registration(cell):
    """The dispatch key and the operator that the first cell of a row names."""
    names = re.findall("`(.*?)`", cell)
    return (names[1] if len(names) > 1 else "PrivateUse1"), names[0]


def program(cell):
    return "import copy; " + cell.strip("`")


@pytest.fixture(scope="module")
def outcomes():
    """What became of each row's program, with the operator and without."""
    runs = []
    for operator, action, _ in ROWS:
        runs += [["", program(action)], [".".join(registration(operator)), program(action)]]
    answers = asking.outcomes(runs)
    return {row[0]: (answers[2 * i], answers[2 * i + 1]) for i, row in enumerate(ROWS)}


def test_the_table_has_a_row_for_each_registration():
    registered = set()
    for key in ("PrivateUse1", "Conjugate", "Negative"):
        for name in torch._C._dispatch_get_registrations_for_dispatch_key(key):
            dump = torch._C._dispatch_dump(name)
            if re.search(
                rf"^{key}: .*chapters/operators/minimal/(minimal|copy|fill)\.cpp", dump, re.M
            ):
                registered.add((key, name.removeprefix("aten::")))
    assert {registration(row[0]) for row in ROWS} == registered


@pytest.mark.parametrize("operator, without", [(row[0], row[2]) for row in ROWS])
def test_without_it_this_happens(operator, without, outcomes):
    name = "aten::" + registration(operator)[1]
    whole, lacking = outcomes[operator]
    assert whole["status"] == 0 and whole["raised"] == "" and name not in whole["fallbacks"]
    if without.startswith("segmentation fault"):
        assert lacking == {"status": -signal.SIGSEGV}
    elif without.startswith("falls back"):
        assert lacking == {**whole, "fallbacks": [name]}
    elif without.startswith("an error that names it"):
        assert name.split(".")[0] in lacking["raised"]
    else:
        wrong, right = re.match("`(.*?)` instead of `(.*?)`", without).groups()
        assert (lacking["printed"], lacking["raised"]) == (wrong, "")
        assert whole["printed"] == right
