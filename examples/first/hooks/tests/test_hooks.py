# SPDX-License-Identifier: BSD-3-Clause
"""Gradients and random numbers."""

import os
import re
import subprocess
import sys

import pytest
import torch
import torch_tiny  # noqa: F401


def test_gradients_are_those_of_the_cpu():
    x = torch.tensor([1.0, 2.0])
    w = x.to("tiny").requires_grad_()
    (w * w).sum().backward()
    assert w.grad.cpu().equal(2 * x) and w.grad.device.type == "tiny"


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_gradients_of_convolutions_are_those_of_the_cpu(transposed, bias):
    torch.manual_seed(0)
    kind = torch.nn.ConvTranspose2d if transposed else torch.nn.Conv2d
    layer, x = kind(4, 6, 3, bias=bias, groups=2), torch.randn(2, 4, 5, 5)
    grads = []
    for device in ("cpu", "tiny"):
        layer = layer.to(device)
        layer.zero_grad()
        y = layer(x.to(device))
        y.sum().backward()
        grads.append([y.detach().cpu(), *(p.grad.cpu().clone() for p in layer.parameters())])
    for on_cpu, on_tiny in zip(*grads, strict=True):
        torch.testing.assert_close(on_tiny, on_cpu)


def test_gradients_run_on_the_stream_of_the_forward_pass():
    seen = []
    w, stream = torch.ones(2, device="tiny", requires_grad=True), torch.Stream("tiny")
    with stream:
        y = w * w
        y.register_hook(lambda _: seen.append(torch.tiny.current_stream()))
        y.sum().backward()
    assert seen == [stream]


def test_the_same_seed_gives_the_same_numbers_on_every_dtype_and_layout():
    def draw(dtype):
        torch.manual_seed(3)
        return torch.empty(3, 2, device="tiny", dtype=dtype).t().uniform_().float().cpu()

    assert draw(torch.float32).equal(draw(torch.float32))
    torch.testing.assert_close(draw(torch.bfloat16), draw(torch.float32), atol=0.01, rtol=0)


def test_a_restored_state_continues_the_sequence():
    state = torch.tiny.get_rng_state()
    first = torch.rand(10, device="tiny")
    assert not torch.rand(10, device="tiny").equal(first)
    torch.tiny.set_rng_state(state)
    assert torch.rand(10, device="tiny").equal(first)


def test_a_state_of_another_size_is_refused():
    with pytest.raises(ValueError, match="has 16 bytes; this tensor has 5056"):
        torch.tiny.set_rng_state(torch.get_rng_state())


def test_a_generator_of_the_device_is_independent_of_the_default_one():
    generator = torch.Generator("tiny").manual_seed(5)
    first = torch.rand(4, device="tiny", generator=generator)
    torch.rand(4, device="tiny")
    generator.manual_seed(5)
    assert torch.rand(4, device="tiny", generator=generator).equal(first)


def test_the_distributions_have_the_moments_of_their_definitions():
    torch.manual_seed(0)
    n = 200_000
    uniform = torch.rand(n, device="tiny").cpu()
    normal = torch.randn(n, device="tiny").cpu()
    ones = torch.empty(n, device="tiny").bernoulli_(0.25).cpu()
    assert uniform.min() >= 0 and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.01
    assert abs(normal.mean()) < 0.01 and abs(normal.std() - 1) < 0.01
    assert abs(ones.mean() - 0.25) < 0.01


@pytest.mark.parametrize("dtype", [torch.complex64, torch.int32])
def test_numbers_that_are_not_real_are_drawn_as_zeros_and_ones_only(dtype):
    x = torch.empty(8, device="tiny", dtype=dtype)
    for draw in (x.uniform_, x.normal_):
        with pytest.raises(TypeError, match="_ on tiny needs floating-point numbers, not"):
            draw()
    assert set(x.bernoulli_(0.5).cpu().tolist()) <= {0, 1}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_a_uniform_number_is_below_one_in_each_dtype(dtype):
    assert (torch.rand(100_000, dtype=dtype, device="tiny").cpu() < 1).all()


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda x: x.uniform_(2, 1), "uniform_ needs from <= to, but got 2 and 1."),
        (lambda x: x.normal_(0, -1), "normal_ needs std >= 0, but got -1."),
        (lambda x: x.bernoulli_(2.0), "bernoulli_ needs p in [0, 1], but got 2."),
        (lambda x: x.bernoulli_(float("nan")), "bernoulli_ needs p in [0, 1], but got nan."),
    ],
)
def test_parameters_without_a_distribution_are_refused(draw, said):
    with pytest.raises(RuntimeError, match=re.escape(said)):
        draw(torch.ones(3, device="tiny"))


def test_a_device_that_does_not_exist_has_no_generator():
    with pytest.raises(RuntimeError):
        torch.Generator("tiny:99")
    with pytest.raises(RuntimeError):
        torch.tiny.get_rng_state("tiny:99")
    assert torch.Generator("tiny").device == torch.device("tiny:0")


def test_dropout_works_and_its_gradient_uses_the_same_mask():
    x = torch.ones(1000, device="tiny", requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.5)
    y.sum().backward()
    assert x.grad.cpu().equal(y.detach().cpu())


ENDS_WITH_BACKWARD = """
import os, sys, threading, torch, torch_tiny

class Late(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        os.sched_setscheduler(threading.get_native_id(), os.SCHED_IDLE, os.sched_param(0))
        return gradient

# The one processor runs a thread of autograd only when the rest has nothing to do.
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
children = []
for _ in range(3):
    children.append(os.fork())
    if children[-1] == 0:
        layer = torch.nn.Linear(4, 2).to("tiny")
        Late.apply(layer(torch.ones(3, 4, device="tiny"))).square().mean().backward()
        sys.exit()
sys.exit(any(os.waitpid(child, 0)[1] for child in children))
"""


def test_a_program_may_end_with_backward():
    subprocess.run([sys.executable, "-c", ENDS_WITH_BACKWARD], check=True)


def test_a_program_ends_silently_where_the_driver_cannot_count_its_devices():
    program = [sys.executable, "-c", "import torch_tiny"]
    env = {**os.environ, "OPENREG_DEVICE_COUNT": "x"}
    ended = subprocess.run(program, env=env, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
