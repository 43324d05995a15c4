# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch itself is the judge: its operator database, forward and backward."""

import pathlib
import sys

import pytest
import torch

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))

import refusals  # noqa: E402
import sweep  # noqa: E402


@pytest.fixture(scope="module")
def results():
    return sweep.sweep_all(torch.float32, samples=2)


def known(file):
    lines = (HERE / file).read_text().splitlines()
    return [line.split(": ", 1)[0] for line in lines if not line.startswith("#")]


def expected_failures(results):
    """Of the operators in `results`, those that are known to fail."""
    return [name for name in known("expected_failures.txt") if name in results]


def check(results, expected=None):
    assert [name for name, result in results.items() if result["status"] == "crash"] == []
    failures = {n: r["message"] for n, r in results.items() if r["status"] == "fail"}
    expected = expected_failures(results) if expected is None else expected
    assert {n: message for n, message in failures.items() if n not in expected} == {}
    assert sorted(expected) == sorted(failures), "these pass now: take them off the list"


def test_in_float32_exactly_the_expected_operators_fail(results):
    check(results)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.complex64], ids=str)
def test_in_other_types_the_same_operators_fail_and_no_others(dtype):
    check(sweep.sweep_all(dtype, samples=1))


@pytest.mark.parametrize("examine", [refusals.types, refusals.outputs])
def test_what_the_cpu_refuses_is_refused_on_the_host(examine):
    names = [name.split() for name in known("expected_refusals.txt")]
    expected = [name for name, kind in names if kind == examine.__name__]
    check(sweep.sweep_all(torch.float32, samples=1, examine=examine), expected)


def test_nearly_all_of_the_database_was_compared(results):
    compared = [name for name, result in results.items() if result.get("samples", 0) > 0]
    assert len(compared) > 0.98 * len(results) - len(expected_failures(results))


def test_hardly_anything_falls_back(results):
    fell_back = {name: result["fallbacks"] for name, result in results.items()}
    assert {op for ops in fell_back.values() for op in ops} == {
        "aten::_to_sparse",
        "aten::linalg_eig",
        "aten::_linalg_eigvals",
    }
    assert sum(bool(ops) for ops in fell_back.values()) < 0.01 * len(results)


def test_the_report_says_who_served_an_operator(results):
    assert results["add"]["served"] == ["native"]
    assert results["mul"]["served"] == results["isnan"]["served"] == ["library"]
    assert results["randn"]["served"] == ["composite"]
