# SPDX-License-Identifier: BSD-3-Clause
"""The figures of the pages about operators: a fused one, one that is better on the CPU, what the
host learns a size for, and a transposed copy."""

import itertools

import torch
import torch.nn.functional as F
from measure import compare, on_the_host, until_done


def fused():
    x = torch.randn(8, 16, 256, 256, device="openreg")
    mask = torch.rand(256, 256, device="openreg") < 0.6
    y, grad = x.softmax(-1), torch.randn_like(x)
    backward = torch.ops.openreg.scale_mask_softmax_backward

    def parts():
        return (x * 0.125).masked_fill_(~mask, float("-inf")).softmax(-1)

    def parts_backward():
        return torch._softmax_backward_data(grad, y, -1, x.dtype).masked_fill_(~mask, 0).mul_(0.125)

    for name, by_parts, at_once in (
        ("forward", parts, lambda: torch.ops.openreg.scale_mask_softmax(x, mask, 0.125)),
        ("backward", parts_backward, lambda: backward(grad, y, 0.125)),
    ):
        ways = {"parts": until_done(by_parts, 1), "fused": until_done(at_once, 1)}
        compare("a fused softmax", f"scores of 8 x 16 x 256 x 256, {name}", ways, rounds=9)


def exponentials():
    """On the CPU, as a thread of the device does it."""
    x = -torch.rand(32, 256)
    masked = x.masked_fill(torch.rand_like(x) < 0.4, float("-inf"))
    out = torch.empty_like(x)
    ways = {
        name: until_done(lambda e=exponents: torch.exp(e, out=out), 10, "cpu")
        for name, exponents in (("finite", x), ("four tenths minus infinity", masked))
    }
    compare("exp on the CPU", "8192 numbers", ways, rounds=101)


def predictions():
    """The host's time for a shape that is new, and for one that is known."""
    for operator in (torch.logical_not, F.hardtanh):
        lengths = itertools.count(1000)

        def new(operator=operator, lengths=lengths):
            x = torch.ones(next(lengths), device="openreg")
            return on_the_host(lambda: operator(x), 1)()

        def known(device, operator=operator):
            x = torch.ones(16, device=device)
            return on_the_host(lambda: operator(x), 500, device)

        ways = {"CPU": known("cpu"), "openreg": known("openreg"), "openreg, a new shape": new}
        compare("shapes that are new", operator.__name__, ways, rounds=25)


def transposed():
    x = torch.ones(4096, 4096, device="openreg").t()

    def by_the_host():
        torch.empty_strided(x.shape, x.stride()).copy_(x.contiguous().cpu())

    ways = {
        "in contiguous order": until_done(by_the_host, 1),
        "as it lies": until_done(x.cpu, 1),
    }
    compare("a transposed matrix to the host", "64 MiB", ways, rounds=7)


if __name__ == "__main__":
    for part in (fused, exponentials, predictions, transposed):
        part()
