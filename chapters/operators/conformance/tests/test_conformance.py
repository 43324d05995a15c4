# SPDX-License-Identifier: BSD-3-Clause
import json
import subprocess
import sys

import pytest
import torch
from running import printed
from torch.testing._internal.opinfo.core import SampleInput
from torch_openreg import conformance_samples

# Operators that are wrong on the device on purpose, judged in a process of its own.
WRONG = """
import json, os
import torch
from torch.testing._internal.opinfo.core import SampleInput
from torch_openreg.conformance import sweep
from torch_openreg.conformance_questions import Question, values

class Op:
    name, supports_autograd = "wrong", True

    def __init__(self, full_name, on_device):
        self.full_name, self.on_device = full_name, on_device

    def supported_dtypes(self, device):
        return {torch.float32}

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
    "gradient of a neighbor": lambda x: (x * 2).detach() + (y := x.flip(0) * 2) - y.detach(),
    "without gradient": lambda x: x * 2 if torch.is_grad_enabled() else x,
    "late error": lambda x: (x * 2)[torch.tensor([0, 7], device=x.device)],
    "crash": lambda x: os.abort(),
}
class Whole(Op):  # Its number is so large that one more is less than a ten-thousandth.
    supports_autograd = False

    def sample_inputs(self, device, dtype, requires_grad):
        yield SampleInput(torch.tensor([1 << 20]))

class Factory(Op):  # Has no tensor among its arguments, only the name of a device.
    supports_autograd = False

    def sample_inputs(self, device, dtype, requires_grad):
        yield SampleInput((2,), kwargs={"device": "cpu"})

    def __call__(self, size, device):
        return super().__call__(torch.ones(size, device=device))

question = Question(values, torch.float32, 1)
ops = [Op(name, way) for name, way in ways.items()]
ops.append(Whole("whole number", lambda x: x * 2 + 1))
ops.append(Factory("factory", lambda x: x * 3))
print(json.dumps(list(sweep(ops, [question, question], "openreg", workers=2))))
"""


def test_the_judge_sees_what_is_wrong():
    judged = {}
    for results in json.loads(printed(WRONG)):
        # Each is asked twice: the second question is answered whatever became of the first.
        assert len(results) == 2
        judged[results[0]["operator"]] = {result["status"] for result in results}
    assert judged.pop("right") == {"pass"}
    assert judged.pop("crash") == {"crash"}
    assert set.union(*judged.values()) == {"fail"}, judged


class FailsBackward(torch.autograd.Function):
    """Launches a kernel in its backward pass that refuses its arguments, and does not read the result."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        grad[torch.tensor([7], device=grad.device)]
        return grad * 2


@pytest.mark.parametrize("wrong,right", [
    (True, False), (42.0, 41.0), ([torch.ones(1), 1], [torch.ones(1), 2]),
    (torch.full((2,), 1 / 3).double(), torch.full((2,), 1 / 3, dtype=torch.float64)),
])  # fmt: skip
def test_numbers_are_compared_with_the_digits_that_they_have(wrong, right):
    conformance_samples.compare(right, right, True)
    with pytest.raises(AssertionError):
        conformance_samples.compare(wrong, right, True)


def test_an_error_of_a_backward_kernel_is_raised_before_the_run_returns():
    sample = SampleInput(torch.ones(2, device="openreg", requires_grad=True))
    with pytest.raises(RuntimeError, match="index 7 is out of bounds"):
        conformance_samples.run(FailsBackward.apply, sample, True)
    assert (sample.input + 1).tolist() == [2, 2]


def run(*arguments):
    command = [sys.executable, "-m", "torch_openreg.conformance", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_run_prints_a_table_and_keeps_its_results_and_known_failures_are_an_exact_list(tmp_path):
    kept, page, expected = (tmp_path / name for name in ("kept.json", "page.html", "expected"))
    expected.write_text("# add passes\nadd, values: reason\n")
    few = ["--samples", 1, "--dtypes", "float32", "--workers", 1, "--json", kept]
    first = run("--only", "add", "arange", *few, "--expected", expected)
    assert first.returncode == 1, first.stderr
    assert "values float32                   2         0         0         0" in first.stdout
    assert "passes now: add, values; take it off the list of known failures." in first.stdout
    assert "fail: arange, outputs float32: AssertionError" in first.stdout
    # A second run asks what the first did not: here nothing.
    about = json.loads(kept.read_text())
    about["results"] = [{**each, "samples": 77} for each in about["results"]]
    kept.write_text(json.dumps(about))
    expected.write_text("arange, outputs float32: reason\n")
    again = run("--only", "add", "arange", *few, "--expected", expected, "--html", page)
    assert again.returncode == 0, again.stderr
    assert "passes now" not in again.stdout and "fail: " not in again.stdout
    assert page.read_text().count("<td>add</td>") > 5
    assert "<td>values float32</td><td>pass</td><td>77</td><td>native</td>" in page.read_text()


@pytest.mark.parametrize("arguments, sentence", [
    (["--device", "nowhere"], "nowhere is no device to judge; install its backend, and give"),
    (["--device", "cpu"], "cpu is no device to judge"),
    (["--dtypes", "float7"], "PyTorch has no dtype float7; float32 is one."),
    (["--only", "addm"], "PyTorch's operator database has no entry addm; there are"),
])  # fmt: skip
def test_what_cannot_be_asked_is_refused_in_a_sentence(arguments, sentence):
    done = run(*arguments)
    assert done.returncode == 1
    assert sentence in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("about", [{"device": "other"}, {"torch": "1.0"}])
def test_results_of_another_device_or_release_are_not_continued(about, tmp_path):
    kept = tmp_path / "kept.json"
    mine = {"device": "openreg", "torch": torch.__version__, "results": []}
    kept.write_text(json.dumps(mine | about))
    done = run("--only", "add", "--samples", 1, "--dtypes", "float32", "--json", kept)
    assert done.returncode == 1 and "remove it, or name another file." in done.stderr
    assert json.loads(kept.read_text()) == mine | about
