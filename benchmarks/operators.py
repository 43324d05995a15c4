# SPDX-License-Identifier: BSD-3-Clause
"""What operators cost on the device and on the CPU, in one run.

Small ones: the processor time that a call takes of the host's thread, which is
the same on a busy machine. Large ones: the time until the result is there.
"""

import statistics
import time
from functools import partial

import torch
import torch.nn.functional as F
import torch_openreg  # noqa: F401

DEVICES = ("cpu", "openreg")


def cost(call, count, clock):
    """Microseconds of one call; the wait for the device counts on a clock that goes on."""
    begin = clock()
    for _ in range(count):
        call()
    if clock is time.thread_time:
        end = clock()
        torch.openreg.synchronize()
        return (end - begin) / count * 1e6
    torch.openreg.synchronize()
    return (clock() - begin) / count * 1e6


def compare(name, make, count, clock, rounds):
    calls = [make(device) for device in DEVICES]
    times = [[], []]
    for call in calls:
        cost(call, count, clock)
    for _ in range(rounds):  # in turn, so that both meet the same noise
        for index, call in enumerate(calls):
            times[index].append(cost(call, count, clock))
    cpu, device = map(statistics.median, times)
    print(f"{name:<28} CPU {cpu:>10.2f} us   openreg {device:>10.2f} us   {device / cpu:>5.2f}")
    return device / cpu


def with_tensors(operation, *sizes):
    def make(device):
        tensors = [torch.rand(size).to(device) for size in sizes]
        return lambda: operation(*tensors)

    return make


def attention_gradients(*tensors):
    tensors = [x.detach().requires_grad_() for x in tensors]
    F.scaled_dot_product_attention(*tensors).sum().backward()


def main():
    small, large = (16,), (1 << 24,)
    batch, token, cache = (4, 8, 512, 64), (1, 8, 1, 64), (1, 8, 512, 64)
    print("16 elements, time of the host's thread")
    for name, operation, sizes in (
        ("add", torch.add, [small] * 2),
        ("add, a number", lambda x: x + 2, [small]),
        ("add_", lambda x, y: x.add_(y), [small] * 2),
        ("mul", torch.mul, [small] * 2),
        ("abs", torch.abs, [small]),
        ("sum", torch.sum, [small]),
        ("softmax", lambda x: torch.softmax(x, 0), [small]),
        ("layer_norm", lambda x: F.layer_norm(x, (16,)), [small]),
        ("mm 4", torch.mm, [(4, 4)] * 2),
        ("view", lambda x: x.view(4, 4), [small]),
    ):
        compare(name, with_tensors(operation, *sizes), 5000, time.thread_time, rounds=75)
    print("large, until the result is there")
    for name, operation, sizes in (
        ("add, 16M elements", torch.add, [large] * 2),
        ("mul, 16M elements", torch.mul, [large] * 2),
        ("sum, 16M elements", torch.sum, [large]),
        ("mm 64", torch.mm, [(64, 64)] * 2),
        ("mm 1024", torch.mm, [(1024, 1024)] * 2),
        ("softmax, 4096 x 4096", lambda x: torch.softmax(x, 1), [(4096, 4096)]),
        ("attention, one token", F.scaled_dot_product_attention, [token, cache, cache]),
        ("attention", F.scaled_dot_product_attention, [batch] * 3),
        ("attention, causal", partial(F.scaled_dot_product_attention, is_causal=True), [batch] * 3),
        ("attention and gradients", attention_gradients, [batch] * 3),
    ):
        compare(name, with_tensors(operation, *sizes), 3, time.perf_counter, rounds=9)


if __name__ == "__main__":
    main()
