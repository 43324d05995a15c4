# SPDX-License-Identifier: BSD-3-Clause
"""What a launch costs the host without a profile, observed, and profiled."""

import ctypes
import os
from pathlib import Path

os.environ.setdefault("KINETO_LOG_LEVEL", "6")

import torch
import torch_openreg
from measure import compare, on_the_host
from torch.profiler import ProfilerActivity, profile

DRIVER = ctypes.CDLL(str(Path(torch_openreg.__file__).with_name("libopenreg.so")))
CPU, DEVICE = ProfilerActivity.CPU, ProfilerActivity.PrivateUse1


def observed(way):
    """With an observer that does nothing; the cost is the driver's alone."""

    def call():
        # A function of C that does nothing.
        nothing = ctypes.cast(DRIVER.orIsForked, ctypes.c_void_p)
        observer = ctypes.c_void_p()
        DRIVER.orAddObserver(ctypes.byref(observer), nothing, None)
        try:
            return way()
        finally:
            DRIVER.orRemoveObserver(observer)

    return call


def profiled(way, *activities):
    def call():
        with profile(activities=activities):
            return way()

    return call


def main():
    # One small operator, most of which is its launch.
    x = torch.ones(16, device="openreg")
    way = on_the_host(x.neg_, 2000)
    ways = {
        "no profile": way,
        "an observer that does nothing": observed(way),
        "the device profiled": profiled(way, DEVICE),
        "the CPU profiled": profiled(way, CPU),
        "both profiled": profiled(way, CPU, DEVICE),
    }
    compare("profiles", "neg_ of 16 elements", ways, rounds=15)


if __name__ == "__main__":
    main()
