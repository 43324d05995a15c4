# SPDX-License-Identifier: BSD-3-Clause
"""What is announced on the host is what the device computes, where Meta kernels say otherwise."""

import functools
import itertools

import pytest
import torch
from torch import nn
from torch.nn import functional as F

aten = torch.ops.aten


def agree(program):
    """`program`, given a function that moves its argument, must return the same on both devices."""
    here, there = (
        program(lambda x, place=place: x.to(place) if isinstance(x, torch.Tensor) else x)
        for place in ("openreg", "cpu")
    )
    for ours, theirs in zip(here, there, strict=True):
        assert (ours is None) == (theirs is None)
        if theirs is not None:
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            torch.testing.assert_close(ours.cpu(), theirs, rtol=2e-2, atol=2e-2, equal_nan=True)


def call(operator, arguments, to):
    return operator(*map(to, arguments))


def masked():
    """The operators that are told which results are wanted, and of which a Meta kernel is asked."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    existing = set(torch._C._dispatch_get_all_op_names())
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name
        if name.startswith("aten::") and name in existing and not schema.overload_name:
            masks = [x for x in schema.arguments if x.name in ("output_mask", "grad_input_mask")]
            if masks and has(name, "CPU") and has(name, "Meta"):
                yield name.removeprefix("aten::")


def batch_norm(x, weight, parameter, training, *after):
    kept = [parameter, parameter] if training else [None, None]
    return [x, x * 2, weight, parameter, parameter, *kept, training, 1e-5], after


def grid(*out):
    return [
        torch.rand(2, 4, *out),
        torch.rand(2, 4, *out),
        torch.rand(2, *out, len(out)),
        0,
        0,
        False,
    ]


# What comes before the mask, and after, for an input and a parameter for each of its four channels.
BEFORE_AND_AFTER = {
    "native_batch_norm_backward": lambda x, p: [
        batch_norm(x, weight, p, training) for weight in (p, None) for training in (True, False)
    ],
    "batch_norm_backward": lambda x, p: [
        batch_norm(x, p, p, training, x.new_empty(0, dtype=torch.uint8))
        for training in (True, False)
    ],
    "native_group_norm_backward": lambda x, p: [
        ([x, x * 2, p.view(2, 2), p.view(2, 2), p, 2, 4, 9, 2], ())
    ],
    "native_layer_norm_backward": lambda x, p: [
        ([x, x * 2, [3], *[p.repeat(6).view(2, 4, 3, 1)] * 2, p[:3], p[:3]], ())
    ],
    "grid_sampler_2d_backward": lambda x, p: [(grid(3, 3), ())],
    "grid_sampler_3d_backward": lambda x, p: [(grid(3, 3, 3), ())],
}


def test_every_operator_with_a_mask_is_tried():
    assert sorted(masked()) == sorted(BEFORE_AND_AFTER)


@pytest.mark.parametrize("name", BEFORE_AND_AFTER)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("wide", [False, True], ids=["parameters alike", "parameters of 32 bits"])
def test_results_are_there_or_not_as_on_the_cpu(name, dtype, wide):
    x = torch.linspace(-2, 2, 72).reshape(2, 4, 3, 3).to(dtype)
    parameter = torch.tensor([0.5, 1, 1.5, 2], dtype=torch.float32 if wide else dtype)
    count = 2 if name.startswith("grid") else 3
    for before, after in BEFORE_AND_AFTER[name](x, parameter):
        for mask in itertools.product([True, False], repeat=count):
            agree(functools.partial(call, getattr(aten, name), [*before, mask, *after]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("training", [True, False])
def test_the_first_layer_may_be_a_batch_norm(dtype, training):
    torch.manual_seed(0)
    x = torch.randn(8, 2).to(dtype)

    def gradients(to):
        torch.manual_seed(0)
        model = to(nn.Linear(2, 1).to(dtype))
        norm = nn.BatchNorm1d(2).to(dtype).train(training).to(model.weight.device)
        model(norm(to(x))).square().sum().backward()
        return norm.weight.grad, norm.bias.grad, model.weight.grad

    agree(lambda to: gradients(lambda y: y.to(to(x).device)))


@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("batch", [0, 2])
def test_attention_returns_the_weights_that_are_wanted(weights, batch):
    torch.manual_seed(0)
    x, inner, outer = torch.randn(batch, 3, 8), torch.randn(24, 8), torch.randn(8, 8)

    def attend(to):
        q = to(x)
        return aten._native_multi_head_attention(
            q, q, q, 8, 2, to(inner), to(inner[:, 0]), to(outer), to(outer[0]), None, weights
        )

    agree(attend)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_the_loss_of_one_sample_is_a_number(reduction):
    x, labels = torch.linspace(-1, 1, 4), torch.tensor([1, 3, -1, 0])
    agree(lambda to: [F.multilabel_margin_loss(to(x), to(labels), reduction=reduction)])
