# SPDX-License-Identifier: BSD-3-Clause
"""In which state the backward pass of a region runs, and functions of the user."""

import threading

import pytest
import torch
from regions import DEVICE, Casts, region


class Watch(torch.autograd.Function):
    """The identity; says whether its backward ran in autocast, and on which thread."""

    seen = None

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        Watch.seen = (torch.is_autocast_enabled(DEVICE), threading.get_ident(), gradient.dtype)
        return gradient


@pytest.mark.parametrize("inside", [False, True])
def test_backward_takes_the_state_of_its_caller_to_the_thread_of_the_device(weight, inside):
    with region():
        loss = (Watch.apply(weight) @ weight).float().sum()
        if inside:
            loss.backward()
    if not inside:
        loss.backward()
    state, thread, dtype = Watch.seen
    assert state is inside
    assert thread != threading.get_ident()
    assert dtype == torch.float32, "a gradient has the type of what it belongs to"


class Product(torch.autograd.Function):
    """A function of the user whose backward has rules too."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, gradient):
        a, b = ctx.saved_tensors
        return gradient @ b.t(), a.t() @ gradient


class AmpProduct(torch.autograd.Function):
    forward = staticmethod(torch.amp.custom_fwd(Product.forward, device_type=DEVICE))
    backward = staticmethod(torch.amp.custom_bwd(Product.backward, device_type=DEVICE))


class Exact(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type=DEVICE, cast_inputs=torch.float32)
    def forward(ctx, a, b):
        return a @ b

    @staticmethod
    @torch.amp.custom_bwd(device_type=DEVICE)
    def backward(ctx, gradient):
        assert not torch.is_autocast_enabled(DEVICE)
        return gradient, gradient


def test_the_backward_of_a_users_function_runs_outside(weight):
    with region():
        loss = Product.apply(weight, weight).float().sum()
    with Casts(), pytest.raises(ValueError, match="mm of torch.bfloat16 and torch.float32"):
        loss.backward()


def test_custom_bwd_takes_it_into_the_region_of_its_forward(weight):
    with region():
        loss = AmpProduct.apply(weight, weight).float().sum()
    loss.backward()
    assert torch.equal(weight.grad.cpu(), torch.full((4, 4), 2.0))


def test_custom_fwd_with_cast_inputs_runs_forward_and_backward_without_autocast(x, weight):
    with region():
        result = Exact.apply(x, weight)
    assert result.dtype == torch.float32
    result.sum().backward()
    assert torch.equal(weight.grad.cpu(), torch.ones(4, 4))
