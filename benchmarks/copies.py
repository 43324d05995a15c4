# SPDX-License-Identifier: BSD-3-Clause
"""Large copies of the device against PyTorch's own Tensor.copy_, in one run.

They alternate in many short rounds. Two ratios are printed: that of the medians, and
the median of the ratios within each round, which a busy machine disturbs less.
"""

import ctypes
import random
import statistics
import sys
import time
from functools import partial

import torch

driver = ctypes.CDLL(sys.argv[1])
KINDS = {"host to device": 1, "device to host": 2, "device to device": 3}


def block(size: int) -> ctypes.c_void_p:
    pointer = ctypes.c_void_p()
    assert driver.orMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0
    assert driver.orMemset(pointer, 0, ctypes.c_size_t(size)) == 0
    return pointer


def milliseconds(call, count: int) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count * 1e3


for mebibytes in (2, 16, 64, 256):
    size = mebibytes << 20
    count = max(1, 64 // mebibytes)
    source = torch.ones(size, dtype=torch.uint8)
    target = torch.zeros(size, dtype=torch.uint8)
    host, there, other = ctypes.c_void_p(source.data_ptr()), block(size), block(size)
    back = ctypes.c_void_p(target.data_ptr())
    ends = {1: (there, host), 2: (back, there), 3: (other, there)}
    calls = {"Tensor.copy_ on the host": partial(target.copy_, source)}
    for name, kind in KINDS.items():
        to, origin = ends[kind]
        calls[name] = partial(driver.orMemcpy, to, origin, ctypes.c_size_t(size), kind)
    rounds = {name: [] for name in calls}
    names = list(calls)
    for turn in range(60):  # a copy leaves its lines in the caches of the next one
        for name in random.Random(turn).sample(names, len(names)):
            rounds[name].append(milliseconds(calls[name], count))
    host = rounds["Tensor.copy_ on the host"]
    for name, times in rounds.items():
        ms = statistics.median(times)
        paired = statistics.median(one / other for one, other in zip(times, host))
        print(
            f"{mebibytes:4} MiB  {name:26} {ms:8.2f} ms;"
            f" {ms / statistics.median(host):5.2f}, in a round {paired:5.2f} of copy_'s time"
        )
    driver.orFree(there)
    driver.orFree(other)
