# SPDX-License-Identifier: BSD-3-Clause
"""What it costs to send a tensor to another process and hear back, in one run."""

import statistics
import time

import torch
import torch.multiprocessing as mp

ROUNDS = 21


def serve(requests, replies):
    """Answers each tensor with its size, and drops it, until there are no more."""
    for tensor in iter(requests.get, None):
        replies.put(tensor.nbytes)
        del tensor


def cost(requests, replies, device, size):
    """Milliseconds until the other process has said how large a new tensor is."""
    tensor = torch.ones(size, dtype=torch.uint8, device=device)
    torch.accelerator.synchronize()
    began = time.perf_counter()
    requests.put(tensor)
    assert replies.get() == size
    return (time.perf_counter() - began) * 1e3


def main():
    context = mp.get_context("spawn")
    requests, replies = context.SimpleQueue(), context.SimpleQueue()
    other = context.Process(target=serve, args=(requests, replies))
    other.start()
    for mebibytes in (1, 64):
        costs = {"openreg": [], "cpu": []}
        for _ in range(ROUNDS):  # in turn, so that both meet the same noise
            for device, times in costs.items():
                times.append(cost(requests, replies, device, mebibytes << 20))
        told = ", ".join(f"{device} {statistics.median(t):.1f} ms" for device, t in costs.items())
        print(f"sending {mebibytes} MiB: {told}")
    requests.put(None)
    other.join()


if __name__ == "__main__":
    main()
