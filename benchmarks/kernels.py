# SPDX-License-Identifier: BSD-3-Clause
"""The figures of the pages about operators: a fused one, one that is better on the CPU,
what the host learns a size for, and a transposed copy. Times are the fastest of several rounds.
"""

import time

import torch
import torch.nn.functional as F


def fastest(call, rounds=15, clock=time.perf_counter):
    """Milliseconds until the device is done; or, with another clock, of the host's thread."""
    times = []
    for _ in range(rounds):
        torch.openreg.synchronize()
        begin = clock()
        call()
        if clock is time.perf_counter:
            torch.openreg.synchronize()
        times.append((clock() - begin) * 1e3)
    return min(times)


def peak(call):
    """MiB that a call needs at its peak, above what there was."""
    call()
    torch.openreg.synchronize()
    torch.openreg.reset_peak_memory_stats()
    before = torch.openreg.memory_allocated()
    call()
    return (torch.openreg.max_memory_allocated() - before) / 2**20


def fused():
    x = torch.randn(8, 16, 256, 256, device="openreg")
    mask = torch.rand(256, 256, device="openreg") < 0.6
    y, grad = x.softmax(-1), torch.randn_like(x)
    backward = torch.ops.openreg.scale_mask_softmax_backward

    def parts():
        return (x * 0.125).masked_fill_(~mask, float("-inf")).softmax(-1)

    def parts_backward():
        return torch._softmax_backward_data(grad, y, -1, x.dtype).masked_fill_(~mask, 0).mul_(0.125)

    print("scale, mask, softmax: scores of 8 x 16 x 256 x 256, float32")
    for name, call in (
        ("parts", parts),
        ("fused", lambda: torch.ops.openreg.scale_mask_softmax(x, mask, 0.125)),
        ("parts, backward", parts_backward),
        ("fused, backward", lambda: backward(grad, y, 0.125)),
    ):
        print(f"  {name:<18}{fastest(call):>8.1f} ms{peak(call):>8.0f} MiB")


def exponentials():
    """On the CPU, as a thread of the device does it."""
    x = -torch.rand(32, 256)
    masked = x.masked_fill(torch.rand_like(x) < 0.4, float("-inf"))
    out, times = torch.empty_like(x), []
    for exponents in (x, masked):
        times.append(fastest(lambda e=exponents: torch.exp(e, out=out), 500) * 1e3)
    print(
        "exp of 8192 numbers {:.1f} us; of as many, four tenths minus infinity, {:.1f}".format(
            *times
        )
    )


def eigenvalues():
    print("linalg.eig, until the result is there")
    for size in (16, 64, 256, 512):
        host = torch.randn(size, size)
        device = host.to("openreg")
        rounds = 100 if size < 100 else 7
        cpu, ours = (fastest(lambda x=x: torch.linalg.eig(x), rounds) for x in (host, device))
        print(f"  {size:<4}  CPU {cpu:>8.2f} ms   fallback {ours:>8.2f} ms   {ours / cpu:.2f}")


def predictions():
    def first(operator, length):
        x = torch.ones(length, device="openreg")
        return fastest(lambda: operator(x), 1, time.thread_time) * 1e3

    def later(operator, device):
        x = torch.ones(16, device=device)
        return fastest(lambda: [operator(x) for _ in range(1000)], 9, time.thread_time)

    print("time of the host's thread, for a shape that is new, and for one that is known")
    for operator in (torch.logical_not, F.hardtanh):
        new = min(first(operator, length) for length in range(1000, 1050))
        known, cpu = (later(operator, device) for device in ("openreg", "cpu"))
        name = operator.__name__
        print(f"  {name:<12} new {new:>6.1f} us   known {known:>4.1f} us   CPU {cpu:>4.1f} us")


def transposed():
    x = torch.ones(4096, 4096, device="openreg").t()

    def by_the_host():
        torch.empty_strided(x.shape, x.stride()).copy_(x.contiguous().cpu())

    print("a transposed matrix of 64 MiB, to the host")
    print(f"  as it lies           {fastest(x.cpu, 7):>6.0f} ms")
    print(f"  in contiguous order  {fastest(by_the_host, 7):>6.0f} ms")


if __name__ == "__main__":
    for part in (fused, exponentials, eigenvalues, predictions, transposed):
        part()
