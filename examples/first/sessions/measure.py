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


def updated_twice(device):
    """A parameter of 1 that a fused optimizer has twice in its list, after a step of -1 for each."""
    parameter, gradient = torch.ones(1, device=device), torch.ones(1, device=device)
    numbers = {"weight_decay": 0, "momentum": 0, "lr": 1, "dampening": 0}
    choices = {"nesterov": False, "maximize": False, "is_first_step": False}
    torch._fused_sgd_([parameter] * 2, [gradient] * 2, [], **numbers, **choices)
    return parameter.item()


def rules():
    """How many operators have a rule of autocast on tiny."""
    names, key = torch._C._dispatch_get_all_op_names(), "AutocastPrivateUse1"
    return sum(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for name in names)


def profiled_kernels(x):
    """How many events of the device a profile of 100 additions has."""
    with torch.profiler.profile() as profile:
        for _ in range(100):
            torch.add(x, x, out=x)
    kinds = [event.device_type for event in profile.events()]
    return kinds.count(torch.autograd.DeviceType.PrivateUse1)


def drop_beside_streams():
    """The microseconds to allocate and drop 16 numbers when a program has made 10,000 streams."""
    for _ in range(10_000):
        torch.Stream("tiny")
    return microseconds(lambda: torch.empty(16, device="tiny"), 200)


on_cpu, on_tiny = costs("cpu"), costs("tiny")
print(f"{'microseconds':<42}{'cpu':>8}{'tiny':>9}")
for what in on_cpu:
    print(f"{what:<42}{on_cpu[what]:>8.1f}{on_tiny[what]:>9.1f}")

numbers = torch.ones(16, device="tiny")
print(f"\n{'numbers':<42}{'cpu':>8}{'tiny':>9}")
twice = [updated_twice(device) for device in ("cpu", "tiny")]
print(f"{'1, updated twice in one fused step':<42}{twice[0]:>8.0f}{twice[1]:>9.0f}")
for what, found in (
    ("rules of autocast", rules()),
    ("kernels in a profile of 100 additions", profiled_kernels(numbers)),
    ("microseconds to drop, beside 10,000 streams", drop_beside_streams()),
):
    print(f"{what:<50}{found:>9.0f}")
