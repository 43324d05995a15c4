# SPDX-License-Identifier: BSD-3-Clause
"""What a tensor without contents costs on the device and on the CPU, in one run."""

import statistics
import time

import torch
import torch_openreg  # noqa: F401

WAYS = {
    "CPU": lambda size: torch.empty(size),
    "CPU, named": lambda size: torch.empty(size, device="cpu"),
    "openreg": lambda size: torch.empty(size, device="openreg"),
}


def cost(make, size, count=2_000):
    """Microseconds of one call."""
    begin = time.perf_counter()
    for _ in range(count):
        make(size)
    return (time.perf_counter() - begin) / count * 1e6


def main():
    for size in (2, 1 << 20, 1 << 24):
        rounds = {way: [] for way in WAYS}
        for _ in range(51):  # in turn, so that all meet the same noise
            for way, make in WAYS.items():
                rounds[way].append(cost(make, size))
        costs = {way: statistics.median(times) for way, times in rounds.items()}
        told = ", ".join(f"{way} {us:.2f} us" for way, us in costs.items())
        print(f"torch.empty({size}): {told}: {costs['openreg'] / costs['CPU']:.2f}")


if __name__ == "__main__":
    main()
