# SPDX-License-Identifier: BSD-3-Clause
"""What a launch costs the host without a profile, observed, and profiled, in one run."""

import ctypes
import os
import statistics
import time

os.environ.setdefault("KINETO_LOG_LEVEL", "6")

import torch
import torch_openreg
from torch.profiler import ProfilerActivity, profile

DRIVER = ctypes.CDLL(torch_openreg.__file__.replace("__init__.py", "libopenreg.so"))
COUNT = 2_000


def cost(x):
    """Microseconds of one small operator, most of which is its launch."""
    begin = time.perf_counter()
    for _ in range(COUNT):
        x.neg_()
    took = (time.perf_counter() - begin) / COUNT * 1e6
    torch.openreg.synchronize()
    return took


def observed(x):
    # A function of C that does nothing: the cost is the driver's alone.
    nothing = ctypes.cast(DRIVER.orIsForked, ctypes.c_void_p)
    observer = ctypes.c_void_p()
    DRIVER.orAddObserver(ctypes.byref(observer), nothing, None)
    try:
        return cost(x)
    finally:
        DRIVER.orRemoveObserver(observer)


def profiled(*activities):
    def run(x):
        with profile(activities=activities):
            return cost(x)

    return run


CPU, DEVICE = ProfilerActivity.CPU, ProfilerActivity.PrivateUse1
# Each way, and the one that it is compared with.
WAYS = {
    "no profile": (cost, None),
    "an observer that does nothing": (observed, "no profile"),
    "the device profiled": (profiled(DEVICE), "no profile"),
    "the CPU profiled": (profiled(CPU), "no profile"),
    "both profiled": (profiled(CPU, DEVICE), "the CPU profiled"),
}


def main():
    x = torch.ones(16, device="openreg")
    rounds = {way: [] for way in WAYS}
    for _ in range(31):  # in turn, so that all meet the same noise
        for way, (run, _) in WAYS.items():
            rounds[way].append(run(x))
    for way, (_, base) in WAYS.items():
        line = f"{way:<30} {statistics.median(rounds[way]):5.2f} us an operator"
        if base:
            differences = [a - b for a, b in zip(rounds[way], rounds[base], strict=True)]
            line += f", {statistics.median(differences):.2f} us more than {base}"
        print(line)


if __name__ == "__main__":
    main()
