# SPDX-License-Identifier: BSD-3-Clause
"""Collectives of one host against a copy on the device, gloo, and MPI if mpi4py is installed.

All of them take turns in the same processes. The bytes are those of one rank's tensor: the input of
all_reduce and send, and the output of all_gather.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from measure import report, wait_of

try:
    import mpi4py
except ImportError:
    mpi4py = None

SIZES = tuple(2**power for power in (10, 14, 16, 18, 20, 22, 24, 26))
ROUNDS = 9
SECONDS = 0.02  # of a round


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


def of_mpi(world):
    """The same three of MPI, over the memory of CPU tensors."""
    from mpi4py import MPI

    def part(x):
        return x.chunk(world.size)[world.rank].numpy()

    return {
        "all_reduce": lambda x, _: world.Allreduce(MPI.IN_PLACE, x.numpy()),
        "all_gather": lambda x, _: world.Allgather(part(x).copy(), x.numpy()),
        "send": lambda x, _: (
            world.Send(x.numpy(), 1)
            if world.rank == 0
            else world.Recv(x.numpy(), 0) if world.rank == 1 else None
        ),
    }  # fmt: skip


def microseconds(operation, x, group, count, hosts):
    """Of one call, from when all ranks begin until the last has ended."""
    dist.barrier(group=hosts)
    began = time.perf_counter()
    for _ in range(count):
        operation(x, group)
    wait_of(x.device)()
    dist.barrier(group=hosts)
    return (time.perf_counter() - began) / count * 1e6


def measure(size, hosts, world):
    """Every round of each way, by operation."""
    here, there = (torch.ones(size // 4, device=device) for device in ("openreg", "cpu"))
    pair = torch.ones(2, size // 4, device="openreg")
    mpi, group = of_mpi(world) if world else {}, dist.group.WORLD
    ways = {}
    for operation in (all_reduce, all_gather, send):
        name = operation.__name__
        ways[name, "copy on the device"] = copy_on_device, pair, group
        ways[name, "gloo"] = operation, there, hosts
        if mpi:
            ways[name, "MPI"] = mpi[name], there, None
        ways[name, "openreg"] = operation, here, group
    counts = {}
    for key, way in ways.items():
        took = torch.tensor(microseconds(*way, 1, hosts))
        dist.broadcast(took, 0, group=hosts)  # all ranks must make the same number of calls
        counts[key] = max(1, min(100, int(SECONDS * 1e6 / took.item())))
    found = {key: [] for key in ways}
    for _ in range(ROUNDS):  # in turn, so that all meet the same noise
        for key, way in ways.items():
            found[key].append(microseconds(*way, counts[key], hosts))
    return found


def one_rank(rank, ranks, store, world):
    torch.set_num_threads(1)
    device = torch.device("openreg", rank)
    torch.openreg.set_device(device)
    # Not by device_id: PyTorch then refuses groups without a backend for that device.
    dist.init_process_group("orccl", init_method=store, rank=rank, world_size=ranks)
    hosts = dist.new_group(backend="gloo")
    for size in SIZES:
        found = measure(size, hosts, world)
        if rank == 0:
            name = f"{size >> 20} MiB" if size >> 20 else f"{size >> 10} KiB"
            for operation in ("all_reduce", "all_gather", "send"):
                times = {way: rounds for (of, way), rounds in found.items() if of == operation}
                figure = f"{operation}, {ranks} ranks"
                report(figure, name, times, least=True, at=size, bytes=size)
    dist.destroy_process_group()


def start(ranks, folder):
    """Runs this program once for each rank, by MPI's launcher if there is one."""
    command = [sys.executable, __file__, json.dumps([ranks, f"file://{folder}/ranks"])]
    environment = os.environ | {
        "OPENREG_DEVICE_COUNT": "4",
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
    }
    if mpi4py:
        launcher = str(Path(sys.executable).with_name("mpiexec"))
        commands = [[launcher, "-n", str(ranks), *command]]
    else:
        commands = [[*command, str(rank)] for rank in range(ranks)]
    started = [subprocess.Popen(command, env=environment) for command in commands]
    if any([process.wait() for process in started]):
        raise SystemExit("A rank has failed; its message is above.")


def main():
    if len(sys.argv) == 1:
        for ranks in (2, 4):
            with tempfile.TemporaryDirectory() as folder:
                start(ranks, folder)
        return
    ranks, store = json.loads(sys.argv[1])
    if mpi4py:
        from mpi4py import MPI

        one_rank(MPI.COMM_WORLD.rank, ranks, store, MPI.COMM_WORLD)
    else:
        one_rank(int(sys.argv[2]), ranks, store, None)


if __name__ == "__main__":
    main()
