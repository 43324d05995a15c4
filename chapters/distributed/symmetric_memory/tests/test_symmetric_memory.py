# SPDX-License-Identifier: BSD-3-Clause
"""Symmetric memory of two ranks, each a process with a device of its own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("symmetric_cases.py")
NAMES = re.findall(r"@case\ndef (\w+)\(", PROGRAM.read_text("utf-8"))
RANKS = 2


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Of each rank, the result of each case."""
    meeting = f"file://{tmp_path_factory.mktemp('symmetric') / 'store'}"
    ranks = [
        subprocess.Popen(
            [sys.executable, PROGRAM, str(rank), str(RANKS), meeting],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(RANKS)
    ]
    try:
        told = [rank.communicate(timeout=120) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    errors = "".join(error for _, error in told)
    assert [rank.returncode for rank in ranks] == [0] * RANKS, errors
    return [dict(line.split(" ", 1) for line in out.splitlines()) for out, _ in told]


@pytest.mark.parametrize("name", NAMES)
def test_symmetric_memory(name, results):
    told = [rank[name].replace("\\n", "\n") for rank in results]
    assert told == ["passed"] * RANKS, "\n".join(told)
