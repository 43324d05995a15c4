# SPDX-License-Identifier: BSD-3-Clause
"""What a kernel announces to read it does not write: over PyTorch's database of operators."""

import contextlib
import functools

import pytest
import torch
from torch.openreg import sanitizer
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = torch.device("openreg", 0)
CHOSEN = [op for op in op_db if torch.float32 in op.supported_dtypes("cpu")]
SAMPLES = 3


def to_device(value):
    return value.detach().to(DEVICE) if isinstance(value, torch.Tensor) else value


def bytes_of(tensor):
    dense = tensor.cpu().resolve_conj().resolve_neg().contiguous()
    return dense.flatten().view(torch.uint8).numpy().tobytes()


def plain(value):
    """Tensors with bytes of their own, on the device."""
    return (
        isinstance(value, torch.Tensor)
        and value.device == DEVICE
        and value.layout == torch.strided
        and value.numel() > 0
    )


def changed_and_announced(call, inputs):
    """For each input, whether its bytes changed, and whether the call said it would write them."""
    before = [bytes_of(each) for each in inputs]
    side, answers = torch.openreg.Stream(), []
    with sanitizer.finding_races() as races:
        torch.openreg.synchronize()
        with contextlib.suppress(Exception):  # What an operator refuses, it does not compute.
            call()
        # Reading on a stream that waits for nothing races with exactly what was announced as written.
        with torch.openreg.stream(side):
            for each in inputs:
                sanitizer.clear()
                each.clone()
                answers.append(any(race.first.is_write for race in races()))
        torch.openreg.synchronize()
        sanitizer.clear()
    return [(was != bytes_of(each), said) for was, each, said in zip(before, inputs, answers)]


def check(op, call, arguments):
    # Other tensors over the same bytes, because as_strided_ changes sizes and no bytes.
    inputs = [leaf.detach() for leaf in tree_leaves(arguments) if plain(leaf)]
    for changed, said in changed_and_announced(call, inputs):
        assert said or not changed, f"{op.full_name} changes an argument that it announced to read."


@pytest.mark.parametrize("part", range(8))
def test_a_kernel_changes_only_what_it_announced_as_written(part):
    ran = 0
    for op in CHOSEN[part::8]:
        try:
            samples = list(op.sample_inputs("cpu", torch.float32))[:SAMPLES]
        except Exception:
            continue  # PyTorch's own sample fails on this machine.
        for sample in samples:
            first, args, kwargs = tree_map(to_device, (sample.input, sample.args, sample.kwargs))
            for function in (op.op, op.inplace_variant):
                if function is None:
                    continue
                check(
                    op, functools.partial(function, first, *args, **kwargs), (first, args, kwargs)
                )
                ran += 1
    assert ran > 100


def test_running_statistics_are_announced_as_written():
    x = torch.full((4, 8), 3.0, device=DEVICE)
    mean, variance = (torch.full((8,), 2.0, device=DEVICE) for _ in range(2))

    def call():
        torch.nn.functional.batch_norm(x, mean, variance, training=True)

    (x_changed, x_said), mean_said, variance_said = changed_and_announced(call, [x, mean, variance])
    assert (x_changed, x_said) == (False, False)
    assert mean_said == variance_said == (True, True)


@pytest.mark.parametrize("training", [True, False])
def test_running_statistics_are_announced_as_read_if_they_only_serve_as_numbers(training):
    x = torch.rand(4, 8, device=DEVICE)
    mean, variance = (torch.ones(8, device=DEVICE) for _ in range(2))
    weight = torch.ones(8, device=DEVICE)
    save = torch.ones(8, device=DEVICE)

    def call():
        if training:
            torch.ops.aten.native_batch_norm_backward(
                x, x, weight, mean, variance, save, save, True, 1e-5, [True, True, True]
            )
        else:
            torch.nn.functional.batch_norm(x, mean, variance, weight)

    assert changed_and_announced(call, [mean, variance]) == [(False, False)] * 2


@pytest.mark.parametrize("name", ["poisson", "_standard_gamma", "binomial"])
def test_parameters_of_a_distribution_are_announced_as_read(name):
    each = [torch.full((8,), 0.5, device=DEVICE) for _ in range(1 + (name == "binomial"))]
    answers = changed_and_announced(lambda: getattr(torch, name)(*each), each)
    assert answers == [(False, False)] * len(each)


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: x.uniform_(2, 3),
        lambda x: x.normal_(9),
        lambda x: x.random_(5, 9),
        lambda x: x.bernoulli_(1.0),
        lambda x: x.exponential_(),
        lambda x: torch.randperm(8, out=x),
    ],
)
def test_what_is_drawn_is_announced_as_written(draw):
    x = torch.zeros(8, device=DEVICE)
    assert changed_and_announced(lambda: draw(x), [x]) == [(True, True)]
