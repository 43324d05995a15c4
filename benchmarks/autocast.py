# SPDX-License-Identifier: BSD-3-Clause
"""What mixed precision costs: a product in bfloat16 autocast, and a scaler's step, on both devices."""

import time

import torch

ROUNDS, CALLS = 40, 5


def cost(device, call):
    """Milliseconds of one call: the fastest of forty rounds of five, each synchronized once."""
    rounds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(CALLS):
            call()
        if device != "cpu":
            torch.accelerator.synchronize()
        rounds.append((time.perf_counter() - began) / CALLS * 1e3)
    return min(rounds)


def products(device, size=1024):
    """The same two float32 matrices, in float32 and in a block of autocast."""
    torch.manual_seed(0)
    a, b = (torch.randn(size, size).to(device) for _ in range(2))
    float32 = cost(device, lambda: torch.mm(a, b))
    with torch.autocast(device, dtype=torch.bfloat16):
        autocast = cost(device, lambda: torch.mm(a, b))
    return float32, autocast


def unscaling(device, count, size):
    gradients = [torch.ones(size, device=device) for _ in range(count)]
    found, inverse = torch.zeros((), device=device), torch.ones((), device=device)
    check = torch._amp_foreach_non_finite_check_and_unscale_
    return cost(device, lambda: check(gradients, found, inverse))


def main():
    print(f"{torch.get_num_threads()} threads; {torch.backends.cpu.get_cpu_capability()}")
    print("mm 1024     float32    bfloat16 autocast")
    times = {device: products(device) for device in ("cpu", "openreg")}
    for device, (float32, autocast) in times.items():
        print(
            f"{device:<9}{float32:>7.2f} ms{autocast:>12.2f} ms  {autocast / float32:.2f} of float32"
        )
    for index, name in enumerate(("float32", "bfloat16")):
        ratio = times["openreg"][index] / times["cpu"][index]
        print(f"{name:<9} openreg takes {ratio:.2f} of the CPU's time")
    print("check and unscale       cpu     openreg")
    for count, size in ((1, 1 << 22), (100, 4096), (200, 16)):
        cpu, openreg = (unscaling(device, count, size) for device in ("cpu", "openreg"))
        what = f"{count} of {size}"
        print(f"{what:<16}{cpu:>8.3f} ms{openreg:>9.3f} ms  {openreg / cpu:.2f} of the CPU's time")


if __name__ == "__main__":
    main()
