# SPDX-License-Identifier: BSD-3-Clause
import threading

import pytest
import torch
from openreg_autocast import autocast
from patient_sgd import PatientSGD
from torch.utils._python_dispatch import TorchDispatchMode


@pytest.fixture
def square():
    return torch.eye(2, device="openreg")


def test_our_context_computes_in_bfloat16_on_every_thread(square):
    types = []

    def work():
        with autocast():
            types.append((square @ square).dtype)

    work()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert types == [torch.bfloat16] * 2


def test_our_context_can_be_told_otherwise(square):
    with autocast(torch.float16):
        assert (square @ square).dtype == torch.float16
    with autocast(enabled=False):
        assert (square @ square).dtype == torch.float32


def test_our_rule_takes_the_widest_type(square):
    import own_rule  # noqa: F401

    half = square.to(torch.bfloat16)
    with torch.autocast("openreg", dtype=torch.bfloat16):
        assert torch.ops.mine.blend(square, half, 0.5).dtype == torch.float32
        assert torch.ops.mine.blend(half, half, 0.5).dtype == torch.bfloat16


def test_outside_autocast_there_is_no_rule(square):
    import own_rule  # noqa: F401

    with pytest.raises(TypeError, match="two tensors of one type"):
        torch.ops.mine.blend(square, square.half(), 0.5)


class Waits(TorchDispatchMode):
    """Counts how often the host asks the device for a number."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.count += operator is torch.ops.aten._local_scalar_dense.default
        return operator(*args, **(kwargs or {}))


def train(optimizer_class):
    """Three steps, of which the second finds an infinite gradient; and how often the host waited."""
    weight = torch.nn.Parameter(torch.ones(3, device="openreg"))
    optimizer = optimizer_class([weight], lr=0.25)
    scaler = torch.amp.GradScaler("openreg", init_scale=8.0)
    with Waits() as waits:
        for factor in (1.0, float("inf"), 1.0):
            optimizer.zero_grad()
            scaler.scale((weight * factor).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
    return weight.tolist(), scaler.get_scale(), waits.count


def test_our_optimizer_skips_the_same_steps_without_waiting():
    assert train(torch.optim.SGD) == ([0.5] * 3, 4.0, 3)
    assert train(PatientSGD) == ([0.5] * 3, 4.0, 0)


def test_our_optimizer_takes_gradients_that_are_unscaled_already():
    weight = torch.nn.Parameter(torch.ones(3, device="openreg"))
    optimizer, scaler = PatientSGD([weight], lr=0.25), torch.amp.GradScaler("openreg")
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    assert weight.tolist() == [0.75] * 3
