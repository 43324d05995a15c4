# SPDX-License-Identifier: BSD-3-Clause
import subprocess
import sys
import threading

import pytest
import torch
from running import on_threads

DEVICE = "openreg"


def leaf(*values):
    return torch.tensor(values, device=DEVICE, requires_grad=True)


def test_gradients_accumulate_until_they_are_cleared():
    x = leaf(1.0, 2.0)
    for _ in range(3):
        (x * x).sum().backward()
    assert x.grad.tolist() == [6, 12]
    x.grad = None
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 4]


def test_a_graph_is_used_once_unless_it_is_retained():
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4, 8]
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_nothing_is_recorded_without_grad_or_in_inference_mode():
    x = leaf(1.0)
    with torch.no_grad():
        assert not (x * 2).requires_grad
    with torch.inference_mode():
        y = x * 2
    assert y.is_inference() and not y.requires_grad
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * y


def test_detach_shares_memory_and_cuts_the_graph():
    x = leaf(1.0, 2.0)
    y = x.detach()
    assert y.data_ptr() == x.data_ptr() and not y.requires_grad
    (x * y).sum().backward()
    assert x.grad.tolist() == [1, 2]


def test_hooks_see_and_change_gradients_on_the_device():
    x = leaf(1.0, 2.0)
    seen = []
    y = x * 3
    y.register_hook(lambda grad: seen.append(grad.device.type) or grad * 2)
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.tolist()))
    y.sum().backward()
    assert seen == [DEVICE, [6, 6]]


def test_a_gradient_has_a_gradient():
    x = leaf(2.0)
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert (first.item(), second.item()) == (12, 12)


def test_a_write_over_what_backward_needs_is_refused():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = (y * y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_tensors_saved_for_backward_can_wait_on_the_host():
    x = leaf(1.0, 2.0)
    with torch.autograd.graph.save_on_cpu():
        y = (x * x).sum()
    y.backward()
    assert x.grad.tolist() == [2, 4]


def test_several_threads_go_backward_at_once():
    shared = leaf(1.0, 2.0)
    own = [leaf(1.0, 2.0) for _ in range(4)]

    def work(x):
        for _ in range(10):
            ((x * x) @ shared).backward()

    on_threads(work, own)
    # x1 * x1 * s1 + x2 * x2 * s2, ten times
    assert [x.grad.tolist() for x in own] == [[20, 80]] * 4
    assert shared.grad.tolist() == [40, 160]


def test_a_backward_function_runs_on_its_forward_stream():
    seen = []

    class Witness(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            seen.append((threading.get_ident(), torch.openreg.current_stream()))
            return grad * 2

    stream = torch.Stream(DEVICE)
    x = leaf(1.0)
    with stream:
        stream.wait_stream(torch.openreg.default_stream())
        y = Witness.apply(x)
    torch.openreg.current_stream().wait_stream(stream)
    y.backward()
    assert x.grad.item() == 2
    assert seen[0][0] != threading.get_ident() and seen[0][1] == stream


def test_gradients_that_cross_streams_arrive_whole():
    torch.manual_seed(0)
    start = torch.randn(256, 256) / 16  # The order of a sum must not matter; a race would.
    expected = start.clone().requires_grad_()
    (torch.tanh(expected @ expected) * expected.sin()).sum().backward()
    side = torch.Stream(DEVICE)
    for _ in range(5):
        x = start.to(DEVICE).requires_grad_()
        side.wait_stream(torch.openreg.current_stream())
        with side:
            left = torch.tanh(x @ x)
        right = x.sin()
        torch.openreg.current_stream().wait_stream(side)
        left.record_stream(torch.openreg.current_stream())
        (left * right).sum().backward()
        torch.testing.assert_close(x.grad.cpu(), expected.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.library  # the fallback waits, so that nothing is left to read
@pytest.mark.parametrize("view", [None, lambda x: x, torch.conj, lambda x: x.conj().imag])
def test_memory_that_another_stream_reads_is_kept_only_if_that_is_recorded(view):
    before = torch.openreg.memory_allocated()
    side = torch.Stream(DEVICE)
    big = torch.ones(1 << 19, dtype=torch.complex64, device=DEVICE)
    side.wait_stream(torch.openreg.current_stream())
    with side:
        for _ in range(100):
            read = big.cumsum(0)
    if view is not None:
        view(big).record_stream(side)
    address = big.data_ptr()
    del big
    other = torch.empty(1 << 20, device=DEVICE)
    assert (other.data_ptr() == address) is (view is None)
    side.synchronize()
    assert read[-1].item() == 1 << 19
    del read, other  # The next allocation looks at what was recorded.
    torch.empty(1, device=DEVICE)
    assert torch.openreg.memory_allocated() == before


def test_a_gradient_can_cross_devices():
    x = torch.ones(2, device="openreg:0", requires_grad=True)
    y = (x * 3).to("openreg:1") * 2
    y.sum().backward()
    assert x.grad.device.index == 0 and x.grad.tolist() == [6, 6]


def test_anomaly_mode_names_the_forward_line():
    x = leaf(0.0)
    with pytest.warns(UserWarning, match="Error detected in SqrtBackward0"):
        with torch.autograd.detect_anomaly(check_nan=True):
            with pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan values"):
                (x.sqrt() * 0).sum().backward()


@pytest.mark.library  # a kernel fails on the device
def test_a_failure_of_a_backward_kernel_arrives_at_a_synchronization():
    class OutOfRange(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad[torch.tensor([5], device=grad.device)].expand(2)

    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="could not run aten::index"):
        OutOfRange.apply(x).sum().backward()
        torch.openreg.synchronize()
    assert x.tolist() == [1, 2]


def test_a_program_may_end_with_a_backward_pass():
    # Whoever wants Python's lock does not get it before the program's end: without the wait at
    # the end, three of five such programs abort.
    program = (
        "import sys, torch\n"
        "class Double(torch.autograd.Function):\n"
        "    forward = staticmethod(lambda ctx, x: x * 2)\n"
        "    backward = staticmethod(lambda ctx, gradient: gradient * 2)\n"
        "sys.setswitchinterval(100)\n"
        "x = torch.ones(3, device='openreg', requires_grad=True)\n"
        "Double.apply(x).sum().backward()\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(6)]
    assert [process.wait() for process in running] == [0] * 6
