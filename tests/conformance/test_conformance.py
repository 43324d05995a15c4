# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch itself is the judge: its operator database, forward and backward."""

import json
import pathlib
import subprocess
import sys

import pytest

EXPECTED = pathlib.Path(__file__).with_name("expected.txt")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What the command finds, with few inputs for each question."""
    kept = tmp_path_factory.mktemp("conformance") / "results.json"
    command = ["--quick", "--expected", EXPECTED, "--json", kept]
    done = subprocess.run(
        [sys.executable, "-m", "torch_openreg.conformance", *map(str, command)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return json.loads(kept.read_text())["results"]


@pytest.fixture(scope="module")
def in_float32(results):
    return {each["operator"]: each for each in results if each["question"] == "values float32"}


def test_exactly_the_expected_operators_fail_and_none_crashes(results):
    assert {each["status"] for each in results} == {"pass", "fail"}


def test_nearly_all_of_the_database_was_compared(in_float32):
    failed = [name for name, result in in_float32.items() if result["status"] != "pass"]
    compared = [name for name, result in in_float32.items() if result.get("samples", 0) > 0]
    assert len(compared) > 0.98 * len(in_float32) - len(failed)


def test_hardly_anything_falls_back(in_float32):
    fell_back = {name: result["fallbacks"] for name, result in in_float32.items()}
    assert {op for ops in fell_back.values() for op in ops} == {
        "aten::linalg_eig",
        "aten::_linalg_eigvals",
        "aten::_sparse_mm_reduce_impl",
        "aten::_sparse_mm_reduce_impl_backward",
    }
    assert sum(bool(ops) for ops in fell_back.values()) < 0.01 * len(in_float32)


def test_the_report_says_who_served_an_operator(in_float32):
    assert in_float32["add"]["served"] == ["native"]
    assert in_float32["mul"]["served"] == in_float32["isnan"]["served"] == ["library"]
    assert in_float32["randn"]["served"] == ["composite"]
