# SPDX-License-Identifier: BSD-3-Clause
"""Bytes per second of all_reduce, all_gather and send, against a copy on the device and against
gloo on the CPU, in one run.

The two alternate in short rounds, and the fastest round counts, because noise only adds. The bytes
are those of one rank's tensor: the input of all_reduce and send, and the output of all_gather.
"""

import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

SIZES = tuple(2**power for power in (10, 14, 18, 20, 22, 24, 26))
ROUNDS = 7
SECONDS = 0.05  # of a round


def named(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def all_reduce(x, group):
    dist.all_reduce(x, group=group)


def all_gather(x, group):
    mine = x.chunk(dist.get_world_size())[dist.get_rank()]
    dist.all_gather_single(x, mine, group=group)


def send(x, group):
    """From rank 0 to rank 1; the others rest."""
    if dist.get_rank() == 0:
        dist.send(x, 1, group=group)
    elif dist.get_rank() == 1:
        dist.recv(x, 0, group=group)


def copy_on_device(x, _):
    """On rank 0 alone, from one half of a tensor to the other."""
    if dist.get_rank() == 0:
        x[0].copy_(x[1])


def seconds(operation, x, group, count):
    """Of one call, from when all ranks begin until the last has ended."""
    dist.barrier(group=HOSTS)
    began = time.perf_counter()
    for _ in range(count):
        operation(x, group)
    if x.device.type == "openreg":
        torch.openreg.synchronize()
    dist.barrier(group=HOSTS)
    return (time.perf_counter() - began) / count


def measure(size, group):
    """The best time of each operation, by name and device."""
    tensors = {device: torch.ones(size // 4, device=device) for device in ("openreg", "cpu")}
    pair = torch.ones(2, size // 4, device="openreg")
    ways = {"copy": (copy_on_device, pair, group)}
    for operation in (all_reduce, all_gather, send):
        ways[operation.__name__] = (operation, tensors["openreg"], group)
        ways[f"{operation.__name__}, gloo"] = (operation, tensors["cpu"], HOSTS)
    counts = {}
    for name, way in ways.items():
        took = torch.tensor(seconds(*way, 1))
        dist.broadcast(took, 0, group=HOSTS)  # all ranks must make the same number of calls
        counts[name] = max(1, min(200, int(SECONDS / took.item())))
    found = {name: [] for name in ways}
    for _ in range(ROUNDS):  # in turn, so that all meet the same noise
        for name, way in ways.items():
            found[name].append(seconds(*way, counts[name]))
    return {name: min(times) for name, times in found.items()}


def one_rank(rank, ranks, folder):
    global HOSTS
    torch.set_num_threads(1)
    device = torch.device("openreg", rank)
    torch.openreg.set_device(device)
    method = f"file://{folder}/ranks"
    # Not by device_id: PyTorch then refuses groups without a backend for that device.
    dist.init_process_group("orccl", init_method=method, rank=rank, world_size=ranks)
    HOSTS = dist.new_group(backend="gloo")
    for size in SIZES:
        found = measure(size, dist.group.WORLD)
        if rank == 0:
            rates = [f"{size / found['copy'] / 1e9:9.3f}"]
            for name in ("all_reduce", "all_gather", "send"):
                here, gloo = found[name], found[f"{name}, gloo"]
                rates.append(f"{size / here / 1e9:9.3f}  {gloo / here:6.1f} x")
            print(f"{ranks:5}  {named(size):>7}  " + "  ".join(rates), flush=True)
    dist.destroy_process_group()


def main():
    os.environ.update(OPENREG_DEVICE_COUNT="4", GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    print("GB/s, and how many times as fast as gloo on the CPU")
    print("ranks     size       copy         all_reduce          all_gather                send")
    for ranks in (2, 4):
        with tempfile.TemporaryDirectory() as folder:
            mp.spawn(one_rank, (ranks, folder), nprocs=ranks)


if __name__ == "__main__":
    sys.exit(main())
