# SPDX-License-Identifier: BSD-3-Clause
"""The figures of the pages about operators: what the host learns a size for, and a transposed
copy."""

import itertools

import torch
import torch.nn.functional as F
from measure import compare, on_the_host, until_done


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
    for part in (predictions, transposed):
        part()
