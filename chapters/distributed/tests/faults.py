# SPDX-License-Identifier: BSD-3-Clause
"""One rank of a group in which something breaks: faults.py FOLDER FAULT...

Prints a line of JSON for each fault: the error that this rank got, after how many seconds, and
whether the device works afterwards.
"""

import ctypes
import json
import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch_openreg

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
DEVICE = torch.device("openreg", RANK)
TIMEOUT = timedelta(seconds=2)
LONG = timedelta(seconds=30)  # for what must be noticed earlier
DRIVER = ctypes.CDLL(str(Path(torch_openreg._C.__file__).parent / "libopenreg.so"))


def ones(count=4, dtype=torch.float32):
    return torch.ones(count, dtype=dtype, device=DEVICE)


def finish(work):
    """Lets the host wait for the collective, and raises its error."""
    work.wait(LONG)


def reduce(tensor=None):
    """Raises an error, or has added up what all ranks gave."""
    tensor = ones() if tensor is None else tensor
    finish(dist.all_reduce(tensor, async_op=True))
    assert tensor.tolist() == [SIZE] * 4


def slow():
    if RANK == 1:
        time.sleep(2 * TIMEOUT.total_seconds())
    reduce()


def another_collective():
    if RANK == 0:
        reduce()
    else:
        finish(dist.broadcast(ones(), 0, async_op=True))


def another_size():
    reduce(ones(4 + 4 * RANK))


def another_dtype():
    reduce(ones(dtype=torch.int32 if RANK else torch.float32))


def another_order_of_groups():
    groups = [dist.new_group(timeout=TIMEOUT) for _ in range(2)]
    tensors = [ones() * 1, ones() * 10]
    order = (0, 1) if RANK == 0 else (1, 0)
    works = [dist.all_reduce(tensors[n], group=groups[n], async_op=True) for n in order]
    for work in works:
        finish(work)
    assert [tensor[0].item() for tensor in tensors] == [2, 20]


def no_memory():
    tensor = ones()
    if RANK == 1:
        assert DRIVER.orInject(b"alloc:1+") == 0
    try:
        finish(dist.all_reduce(tensor, group=dist.new_group(timeout=TIMEOUT), async_op=True))
    finally:
        DRIVER.orInject(b"")


def killed():
    reduce()
    if RANK == 1:
        # Rank 0 is inside the collective by then.
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    reduce()


def stopped():
    reduce()
    if RANK == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    reduce()


def pending():
    reduce()
    if RANK == 0:
        dist.all_reduce(ones(), async_op=True)
        print(json.dumps({"leaves": time.time()}), flush=True)
        sys.exit()
    time.sleep(1)
    reduce()


def main(folder, *names):
    torch.set_num_threads(1)
    torch.openreg.set_device(RANK)
    store = dist.FileStore(str(Path(folder) / "store"), SIZE)
    for name in names:
        store.set(f"{name}/{RANK}", "")
        store.wait([f"{name}/{rank}" for rank in range(SIZE)], LONG)
        dist.init_process_group(
            store=dist.PrefixStore(name, store),
            rank=RANK,
            world_size=SIZE,
            timeout=TIMEOUT,
            device_id=DEVICE,
        )
        ones()  # what it costs to use the device first is not part of the fault
        error, began = "", time.monotonic()
        try:
            globals()[name]()
        except Exception as caught:
            error = f"{type(caught).__name__}: {caught}"
        seconds = time.monotonic() - began
        dist.destroy_process_group()
        works = (ones() + 1).sum().item() == 8
        answer = {"fault": name, "error": error, "seconds": seconds, "works": works}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
