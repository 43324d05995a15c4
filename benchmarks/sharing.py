# SPDX-License-Identifier: BSD-3-Clause
"""What it costs to send a tensor to another process and hear back."""

import time

import torch
import torch.multiprocessing as mp
from measure import compare


def serve(requests, replies):
    """Answers each tensor with its size, and drops it, until there are no more."""
    for tensor in iter(requests.get, None):
        replies.put(tensor.nbytes)
        del tensor


def sending(requests, replies, device, size):
    """Microseconds until the other process has said how large a new tensor is."""

    def way():
        tensor = torch.ones(size, dtype=torch.uint8, device=device)
        torch.accelerator.synchronize()
        began = time.perf_counter()
        requests.put(tensor)
        assert replies.get() == size
        return (time.perf_counter() - began) * 1e6

    return way


def main():
    context = mp.get_context("spawn")
    requests, replies = context.SimpleQueue(), context.SimpleQueue()
    other = context.Process(target=serve, args=(requests, replies))
    other.start()
    for mebibytes in (1, 64):
        ways = {
            name: sending(requests, replies, device, mebibytes << 20)
            for name, device in (("CPU", "cpu"), ("openreg", "openreg"))
        }
        compare("sending to another process", f"{mebibytes} MiB", ways, rounds=15)
    requests.put(None)
    other.join()


if __name__ == "__main__":
    main()
