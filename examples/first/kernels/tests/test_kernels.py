# SPDX-License-Identifier: BSD-3-Clause
"""A kernel computes what the CPU computes, or leaves it to the CPU."""

import pytest
import torch
import torch_tiny  # noqa: F401

X = torch.arange(6.0).view(2, 3)


@pytest.mark.parametrize(
    "a, b",
    [(X, X), (X.t(), X.t()), (X.t(), X.view(3, 2)), (X, X[0]), (X, X.int()), (X.int(), X.int()),
     (X[:, 1:], X[:, 1:]), (X, torch.tensor(2.0)), (X.double(), X), (X[:0], X[:0])],
)  # fmt: skip
def test_a_kernel_gives_the_results_of_the_cpu_for_every_kind_of_argument(a, b):
    x, y = a.to("tiny"), b.to("tiny")
    assert (x + y).cpu().equal(a + b) and (x * y).cpu().equal(a * b)
    assert torch.add(x, y, alpha=2).cpu().equal(torch.add(a, b, alpha=2))


def test_ones_zeros_and_full_run_on_the_device_alone():
    torch.tiny.fallback_report(reset=True)
    one, nought = torch.ones(2, device="tiny"), torch.zeros(2, device="tiny")
    seven = torch.full((2,), 7.0, device="tiny")
    again = seven.clone().zero_()
    assert torch.tiny.fallback_report() == {}
    found = [tensor.cpu().tolist() for tensor in (one, nought, seven, again)]
    assert found == [[1, 1], [0, 0], [7, 7], [0, 0]]


def test_two_devices_in_one_call_are_refused():
    with pytest.raises(RuntimeError, match="same device"):
        X.to("tiny:0") + X.to("tiny:1")


def test_an_output_that_lies_partly_over_an_argument_is_refused():
    x = torch.ones(5, device="tiny")
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        torch.add(x[:-1], x[:-1], out=x[1:])
    assert torch.add(x, x, out=x).cpu().tolist() == [2.0] * 5


def test_a_kernel_runs_on_the_current_stream_while_the_host_goes_on():
    x, y = torch.ones(2_000_000, device="tiny"), torch.ones(2_000_000, device="tiny")
    stream = torch.Stream("tiny")
    torch.tiny.synchronize()
    with stream:
        for _ in range(200):
            y.add_(x)
        went_on = not stream.query()
    stream.synchronize()
    assert went_on and y.cpu()[-1] == 201


def test_memory_that_another_stream_reads_may_be_dropped():
    x, stream = torch.ones(2_000_000, device="tiny"), torch.Stream("tiny")
    torch.tiny.synchronize()
    with stream:
        y = x + x
    x.record_stream(stream)
    del x
    stream.synchronize()
    assert y.cpu().eq(2).all()


def test_memory_that_is_dropped_while_a_kernel_uses_it_keeps_the_result_right():
    for _ in range(20):
        y = torch.full((100_000,), 3.0, device="tiny") + torch.full((100_000,), 4.0, device="tiny")
        assert y.cpu().eq(7).all()


def test_fill_writes_into_views_and_other_dtypes():
    x = torch.zeros(2, 3, device="tiny")
    x[:, 1].fill_(5)
    assert x.cpu().tolist() == [[0, 5, 0], [0, 5, 0]]
    assert torch.full((2,), 7, device="tiny").cpu().tolist() == [7, 7]


def test_a_storage_grows_when_its_kernels_have_run():
    with torch.Stream("tiny"):
        x = torch.empty(20_000_000, device="tiny").fill_(1.0)
        x.resize_(20_000_001)
        assert bool((x[:-1].cpu() == 1).all())
