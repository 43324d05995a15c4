# SPDX-License-Identifier: BSD-3-Clause
"""What operators and copies cost on the OpenCL device, with the CPU in the same run."""

import statistics
import time

import torch


def best(call, device, times, rounds=15):
    """Seconds of one call, the device idle before and after: the median of some rounds."""
    found = []
    for _ in range(rounds):
        torch.openreg.synchronize()
        began = time.perf_counter()
        for _ in range(times):
            call()
        host = time.perf_counter() - began
        torch.openreg.synchronize()
        found.append((host / times, (time.perf_counter() - began) / times))
    return statistics.median(f[0] for f in found), statistics.median(f[1] for f in found)


def main():
    small, large = torch.randn(16), torch.randn(1024, 1024)
    rows = []
    x, y = small.to("openreg"), large.to("openreg")
    for name, call, times, part in (
        ("add of 16 elements, host time", lambda t, _: t + t, 300, 0),
        ("add of 1024 by 1024", lambda _, t: t + t, 10, 1),
        ("mm of 1024 by 1024", lambda _, t: t @ t, 2, 1),
        ("softmax of 1024 by 1024", lambda _, t: t.softmax(1), 2, 1),
    ):
        for given in ((small, large), (x, y)):
            call(*given)
        cpu = best(lambda: call(small, large), "cpu", times)[part]  # noqa: B023
        ours = best(lambda: call(x, y), "openreg", times)[part]  # noqa: B023
        rows.append((name, cpu, ours))
    host = torch.empty(16 << 20)
    there = torch.empty(16 << 20)
    device = torch.empty(16 << 20, device="openreg")
    there.copy_(host), device.copy_(host)
    copy = best(lambda: there.copy_(host), "cpu", 2)[1]
    rows.append(("64 MiB to the device", copy, best(lambda: device.copy_(host), "openreg", 2)[1]))
    rows.append(("64 MiB to the host", copy, best(lambda: there.copy_(device), "openreg", 2)[1]))
    print("| | CPU, us | OpenCL, us | ratio |\n|---|---|---|---|")
    for name, cpu, ours in rows:
        print(f"| {name} | {cpu * 1e6:.1f} | {ours * 1e6:.1f} | {ours / cpu:.2f} |")


if __name__ == "__main__":
    main()
