# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch itself is the judge: its operator database, forward and backward."""

import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))

import sweep  # noqa: E402


@pytest.fixture(scope="module")
def results():
    return sweep.sweep_all(samples=2)


def expected_failures():
    lines = (HERE / "expected_failures.txt").read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if not line.startswith("#"))


def test_nothing_crashes(results):
    assert [name for name, result in results.items() if result["status"] == "crash"] == []


def test_exactly_the_expected_operators_fail(results):
    failures = {n: r["message"] for n, r in results.items() if r["status"] == "fail"}
    unexpected = {n: message for n, message in failures.items() if n not in expected_failures()}
    assert unexpected == {}
    assert sorted(expected_failures()) == sorted(failures), "these pass now: take them off the list"


def test_nearly_all_of_the_database_was_compared(results):
    compared = [name for name, result in results.items() if result.get("samples", 0) > 0]
    assert len(compared) > 0.98 * len(results) - len(expected_failures())


def test_hardly_anything_falls_back(results):
    fell_back = {name: result["fallbacks"] for name, result in results.items()}
    assert {op for ops in fell_back.values() for op in ops} == {"aten::_to_sparse"}
    assert sum(bool(ops) for ops in fell_back.values()) < 0.01 * len(results)


def test_the_report_says_who_served_an_operator(results):
    assert results["add"]["served"] == ["native"]
    assert results["mul"]["served"] == results["isnan"]["served"] == ["library"]
    assert results["randn"]["served"] == ["composite"]
