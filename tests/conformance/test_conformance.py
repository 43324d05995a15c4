# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch itself is the judge: its operator database, forward and backward."""

import json
import pathlib
import subprocess
import sys

import pytest
import torch

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))

import announced  # noqa: E402
import refusals  # noqa: E402
import sweep  # noqa: E402

# Operators that are wrong on the device on purpose, judged in a process of its own.
WRONG = """
import json, os, sys
import torch
from torch.testing._internal.opinfo.core import SampleInput
import sweep

class Op:
    name, supports_autograd = "wrong", True

    def __init__(self, on_device):
        self.on_device = on_device

    def supported_backward_dtypes(self, device):
        return {torch.float32}

    def sample_inputs(self, device, dtype, requires_grad):
        yield SampleInput(torch.ones(2, requires_grad=requires_grad))

    def __call__(self, x):
        return x * 2 if x.is_cpu else self.on_device(x)

def outside(y):
    y = y.as_strided((2,), (1,))
    y.untyped_storage().resize_(4)
    return y

ways = {
    "right": lambda x: x * 2,
    "number": lambda x: x * 3,
    "type": lambda x: x.double() * 2,
    "shape": lambda x: (x * 2)[None],
    "storage": lambda x: outside(x * 2),
    "gradient": lambda x: x.detach() + x,
    "without gradient": lambda x: x * 2 if torch.is_grad_enabled() else x,
    "late error": lambda x: (x * 2)[torch.tensor([0, 7], device=x.device)],
    "crash": lambda x: os.abort(),
}
question = sweep.Question(sweep.examine, torch.float32, 1)
twice = lambda way: sweep.judge(Op(way), [question, question])
print(json.dumps({name: twice(way) for name, way in ways.items()}))
"""


def test_the_judge_sees_what_is_wrong():
    done = subprocess.run(
        [sys.executable, "-c", WRONG], cwd=HERE, stdout=subprocess.PIPE, text=True, check=True
    )
    judged = json.loads(done.stdout)
    # Each is asked twice: the second question is answered whatever became of the first.
    assert all(len(results) == 2 for results in judged.values())
    judged = {name: {result["status"] for result in results} for name, results in judged.items()}
    assert judged.pop("right") == {"pass"}
    assert judged.pop("crash") == {"crash"}
    assert set.union(*judged.values()) == {"fail"}, judged


FLOAT, OTHER = torch.float32, [torch.bfloat16, torch.float16, torch.complex64]
QUESTIONS = {
    "float": sweep.Question(sweep.examine, FLOAT, samples=2),
    **{str(dtype): sweep.Question(sweep.examine, dtype, samples=1) for dtype in OTHER},
    "types": sweep.Question(refusals.types, FLOAT, samples=1),
    "outputs": sweep.Question(refusals.outputs, FLOAT, samples=1),
    **{
        f"announced, {dtype}": sweep.Question(announced.of_operator, dtype, samples=1)
        for dtype in [FLOAT, torch.bfloat16]
    },
}


@pytest.fixture(scope="module")
def answers():
    return sweep.sweep_all(QUESTIONS)


@pytest.fixture(scope="module")
def results(answers):
    return answers["float"]


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


@pytest.mark.parametrize("dtype", list(map(str, OTHER)))
def test_in_other_types_the_same_operators_fail_and_no_others(answers, dtype):
    check(answers[dtype])


@pytest.mark.parametrize("question", ["types", "outputs"])
def test_what_the_cpu_refuses_is_refused_on_the_host(answers, question):
    names = [name.split() for name in known("expected_refusals.txt")]
    check(answers[question], [name for name, kind in names if kind == question])


@pytest.mark.parametrize("dtype", [FLOAT, torch.bfloat16], ids=str)
def test_the_device_returns_what_faketensor_announces(answers, dtype):
    results = answers[f"announced, {dtype}"]
    differ = [name for name in known("expected_announcements.txt") if name in results]
    check(results, expected_failures(results) + differ)


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
