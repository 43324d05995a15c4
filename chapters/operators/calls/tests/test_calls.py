# SPDX-License-Identifier: BSD-3-Clause
"""Calls that are recorded from a program can be repeated and judged."""

import json
import subprocess
import sys

import pytest
import torch
from torch_openreg import calls
from torch_openreg.calls import Call, judge, read, recording

DEVICE = "openreg"


@pytest.fixture
def recorded(tmp_path):
    """Records a function, and returns the calls."""

    def record(function):
        file = tmp_path / "calls.jsonl"
        with recording(file):
            function()
        return read(file)

    return record


def names(recorded):
    return [call.name for call in recorded]


@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_a_training_step_is_recorded_and_right(recorded, device):
    model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.GELU()).to(device)
    x = torch.randn(3, 8).to(device)
    found = recorded(lambda: model(x).square().mean().backward())
    assert {"aten.addmm.default", "aten.gelu.default", "aten.gelu_backward.default"} <= {
        *names(found)
    }
    assert {judge(call, DEVICE) for call in found} == {("right", "")}


def test_equal_calls_fill_one_line_and_the_most_frequent_is_first(recorded):
    x, y = torch.randn(3), torch.randn(4)

    def program():
        y.exp()
        for scale in (1.0, 2.0):
            (x * 0 + scale).exp()

    found = {(call.name, call.elements()): call.count for call in recorded(program)}
    assert found["aten.exp.default", 3] == 2 and found["aten.exp.default", 4] == 1
    assert next(iter(found.values())) == 2


def test_views_and_random_numbers_and_sparse_tensors_are_left_out(recorded):
    sparse = torch.eye(3).to_sparse()
    found = recorded(lambda: (torch.rand(3).view(3, 1).t(), sparse + sparse, torch.ones(2)))
    assert names(found) == ["aten.ones.default"]


def test_a_tensor_comes_back_with_its_geometry_and_within_its_range(recorded):
    x = torch.linspace(3, 5, 12).view(3, 4).t()
    wide = torch.tensor([[2.0]]).expand(5, 7)
    [sine, cosine] = recorded(lambda: (x.sin(), wide.cos()))
    for device in ("cpu", DEVICE):
        [again], _ = sine.arguments(device)
        assert again.stride() == (1, 4) and again.size() == x.size()
        assert again.min() >= 3 and again.max() <= 5
        [again], _ = cosine.arguments(device)
        assert again.stride() == (0, 0) and again[4, 6] == 2
    assert torch.equal(sine.arguments("cpu")[0][0], sine.arguments(DEVICE)[0][0].cpu())


def test_few_integers_are_kept_and_many_drawn_from_their_range(recorded):
    table, few, many = torch.randn(9, 2), torch.tensor([4, 0, 8]), torch.arange(1000) % 9
    [first, second] = recorded(lambda: (table[few], table.index_select(0, many)))
    assert first.arguments("cpu")[0][1][0].tolist() == [4, 0, 8]
    drawn = second.arguments("cpu")[0][2]
    assert drawn.shape == (1000,) and drawn.min() >= 0 and drawn.max() <= 8
    assert judge(first, DEVICE) == judge(second, DEVICE) == ("right", "")


def test_other_arguments_survive(recorded):
    x = torch.tensor([float("inf"), float("nan"), 1.0], dtype=torch.float16)

    def program():
        x.nan_to_num(posinf=float("inf"))
        torch.empty_strided((2, 3), (1, 2), dtype=torch.bfloat16, device="cpu")
        x.to(torch.complex64)

    found = recorded(program)
    assert {judge(call, DEVICE) for call in found} == {("right", "")}
    [empty] = [call for call in found if "empty_strided" in call.name]
    assert empty.arguments(DEVICE)[1]["device"] == torch.device(DEVICE)


def test_an_argument_without_a_representation_is_refused(recorded):
    generator = torch.Generator()
    about = "A call with an argument of type Generator cannot be recorded."
    with pytest.raises(TypeError, match=about):
        calls.encoded(generator, calls.geometry)


def call(op, *args):
    encoded = calls.encoded(args, calls.described)
    return Call(json.dumps({"count": 1, "op": op, "args": encoded, "kwargs": {}}))


def test_wrong_results_and_changes_are_found(monkeypatch):
    adding = call("aten.add_.Tensor", torch.ones(3), 2)
    assert judge(adding, DEVICE) == ("right", "")
    right = Call.results
    monkeypatch.setattr(
        Call, "results", lambda self, device: [x + (device == DEVICE) for x in right(self, device)]
    )
    status, why = judge(adding, DEVICE)
    assert status == "wrong" and why.startswith("Tensor-likes are not close!")


def test_another_dtype_or_size_is_a_difference():
    one, two = torch.ones(2), torch.ones(2, 1)
    assert calls.difference(one, one.double()) == ("torch.float64 [2] instead of torch.float32 [2]")
    assert calls.difference(one, two) == "torch.float32 [2, 1] instead of torch.float32 [2]"
    assert calls.difference(3, 4) == "4 instead of 3"


@pytest.mark.parametrize("mask", [float("inf"), torch.finfo(torch.float32).min])
def test_a_number_that_stands_for_infinity_makes_no_other_difference_small(mask):
    assert calls.difference(torch.tensor([mask, 1.0]), torch.tensor([mask, -1000.0]))
    assert not calls.difference(torch.tensor([mask, 1.0]), torch.tensor([mask, 1.0]))


def test_what_the_device_refuses_is_told_and_what_the_cpu_refuses_is_left_out(monkeypatch):
    wrong = call("aten.mm.default", torch.ones(2, 3), torch.ones(2, 3))
    status, why = judge(wrong, DEVICE)
    assert status == "left out" and "cannot be multiplied" in why
    right = Call.results

    def refusing(self, device):
        if device == DEVICE:
            raise RuntimeError("no kernel")
        return right(self, device)

    monkeypatch.setattr(Call, "results", refusing)
    assert judge(call("aten.exp.default", torch.ones(2)), DEVICE) == ("refused", "no kernel")


def judged(*arguments):
    command = [sys.executable, "-m", "torch_openreg.calls", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_command_sums_up_and_keeps_the_results(tmp_path):
    file, kept = tmp_path / "calls.jsonl", tmp_path / "results.json"
    with recording(file):
        torch.ones(3).exp()
    result = judged(file, "--json", kept)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("2 right\ntime over the CPU's: median ")
    rows = json.loads(kept.read_text())
    assert [row["operator"] for row in rows] == ["aten.ones.default", "aten.exp.default"]
    assert all(row["ratio"] > 0 for row in rows)
    assert judged(file, "--quick").stdout == "2 right\n"


def test_a_file_that_is_not_there_is_refused(tmp_path):
    result = judged(tmp_path / "none")
    assert result.stderr == f"{tmp_path / 'none'} is no file; `with recording(file):` writes one.\n"
    assert result.returncode == 1
