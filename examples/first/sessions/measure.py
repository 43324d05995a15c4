# SPDX-License-Identifier: BSD-3-Clause
"""Measures what the limits of tiny cost, beside the CPU, in a few seconds."""

import time

import torch

torch.set_num_threads(1)


def microseconds(function, times):
    """The time of one call, with what it leaves to the device."""
    function()
    torch.accelerator.synchronize()
    began = time.perf_counter()
    for _ in range(times):
        function()
    torch.accelerator.synchronize()
    return (time.perf_counter() - began) / times * 1e6


def costs(device):
    """What is measured, with its time on one device."""
    few, many = torch.ones(16, device=device), torch.ones(4_000_000, device=device)
    matrix, some, all_ = torch.ones(64, 64, device=device), few.clone(), many.clone()
    return {
        "allocate and drop 16 numbers": microseconds(lambda: torch.empty(16, device=device), 2000),
        "add 16 numbers, into memory that exists": microseconds(
            lambda: torch.add(few, few, out=some), 2000
        ),
        "add 16 numbers, into a new tensor": microseconds(lambda: few + few, 2000),
        "add 4 million numbers": microseconds(lambda: torch.add(many, many, out=all_), 20),
        "multiply matrices of 64 by 64 (fallback)": microseconds(lambda: matrix @ matrix, 300),
        "read one number with item()": microseconds(lambda: few[0].item(), 500),
        "copy a transposed matrix of 64 by 64": microseconds(lambda: matrix.t().contiguous(), 300),
    }


on_cpu, on_tiny = costs("cpu"), costs("tiny")
print(f"{'microseconds':<42}{'cpu':>8}{'tiny':>9}")
for what in on_cpu:
    print(f"{what:<42}{on_cpu[what]:>8.1f}{on_tiny[what]:>9.1f}")
