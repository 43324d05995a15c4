# SPDX-License-Identifier: BSD-3-Clause
"""What a launch costs the host without a profile, observed, and profiled, in one run."""

import ctypes
import os
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


def profiled(activity):
    def run(x):
        with profile(activities=[activity]):
            return cost(x)

    return run


WAYS = {
    "no profile": cost,
    "an observer that does nothing": observed,
    "the device profiled": profiled(ProfilerActivity.PrivateUse1),
    "the CPU profiled": profiled(ProfilerActivity.CPU),
}


def main():
    x = torch.ones(16, device="openreg")
    rounds = {way: [] for way in WAYS}
    for _ in range(15):  # in turn, so that all meet the same noise
        for way, run in WAYS.items():
            rounds[way].append(run(x))
    # The least of each, because noise only adds.
    costs = {way: min(times) for way, times in rounds.items()}
    for way, us in costs.items():
        print(f"{way:<30} {us:6.2f} us an operator, {us - costs['no profile']:+.2f} us")


if __name__ == "__main__":
    main()
