# SPDX-License-Identifier: BSD-3-Clause
"""Copies of the device against PyTorch's own Tensor.copy_ on the host.

A copy leaves its lines in the caches of the next one, so the ways take turns in random order. The
driver is called through ctypes, which adds about a microsecond to each call.
"""

import ctypes
import random
from pathlib import Path

import torch
import torch_openreg
from measure import report, until_done

DRIVER = ctypes.CDLL(str(Path(torch_openreg.__file__).with_name("libopenreg.so")))
TO_DEVICE, TO_HOST, ON_DEVICE = 1, 2, 3  # orMemcpyKind
ROUNDS = 40


def block(allocate, size):
    pointer = ctypes.c_void_p()
    assert allocate(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0
    return pointer


def ways_of(size):
    """Each way to copy `size` bytes, and what frees them."""
    source = torch.ones(size, dtype=torch.uint8)
    target = torch.zeros(size, dtype=torch.uint8)
    pageable = ctypes.c_void_p(source.data_ptr())
    pinned = block(DRIVER.orMallocHost, size)
    ctypes.memset(pinned, 1, size)
    here, there = block(DRIVER.orMalloc, size), block(DRIVER.orMalloc, size)
    for pointer in (here, there):
        assert DRIVER.orMemset(pointer, 1, ctypes.c_size_t(size)) == 0

    def copy(to, origin, kind):
        return lambda: DRIVER.orMemcpy(to, origin, ctypes.c_size_t(size), kind)

    def free():
        for pointer in (here, there):
            DRIVER.orFree(pointer)
        DRIVER.orFreeHost(pinned)

    calls = {
        "Tensor.copy_ on the host": lambda: target.copy_(source),
        "host to device": copy(here, pageable, TO_DEVICE),
        "pinned to device": copy(here, pinned, TO_DEVICE),
        "device to host": copy(ctypes.c_void_p(target.data_ptr()), here, TO_HOST),
        "device to device": copy(there, here, ON_DEVICE),
    }
    count = max(1, min(200, (64 << 20) // size))
    return {name: until_done(call, count, "cpu") for name, call in calls.items()}, free


def main():
    for size in (1 << 12, 1 << 16, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28):
        ways, free = ways_of(size)
        found = {name: [] for name in ways}
        for turn in range(ROUNDS if size < 1 << 28 else 8):
            for name in random.Random(turn).sample(list(ways), len(ways)):
                found[name].append(ways[name]())
        free()
        name = f"{size >> 20} MiB" if size >> 20 else f"{size >> 10} KiB"
        report("copies", name, found, at=size, bytes=size)


if __name__ == "__main__":
    main()
