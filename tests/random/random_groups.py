# SPDX-License-Identifier: BSD-3-Clause
"""Collectives made at random, on two ranks, compared with gloo on the CPU; the last one is followed by the end of the group."""

import contextlib
import datetime
import json
import os
import random
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RANKS, PATIENCE = 2, 120
LONGEST = 100  # programs of one process: gloo's threads stay with the groups that are kept
OPERATIONS = [
    "dist.all_reduce({x})",
    "dist.all_reduce({x}, op=dist.ReduceOp.MAX)",
    "dist.all_reduce({x}.t())",
    "dist.broadcast({x}, {r})",
    "dist.reduce({x}, {r}); dist.broadcast({x}, {r})",
    "dist.all_gather(two := [torch.zeros_like({x}), torch.zeros_like({x})], {x}); {new} = two[0] - two[1]",
    "{new} = torch.zeros(2 * {x}.shape[0], *{x}.shape[1:], dtype={x}.dtype, device={x}.device); dist.all_gather_into_tensor({new}, {x})",
    # Rows that do not divide are refused, as c10d's check does for NCCL; gloo takes them.
    "{new} = torch.zeros_like({x}); {x}.shape[0] % 2 or dist.all_to_all_single({new}, {x}.contiguous())",
    "{new} = {x}.clone(); dist.send({new}, 1) if rank == 0 else dist.recv({new}, 0)",
    "{new} = torch.zeros_like({x}); [w.wait() for w in dist.batch_isend_irecv([dist.P2POp(dist.isend, {x}.clone(), 1 - rank), dist.P2POp(dist.irecv, {new}, 1 - rank)])]",
    "dist.barrier()",
    "{new} = torch.zeros_like({x}); dist.scatter({new}, [{x} * 1, {x} * 2] if rank == {r} else None, src={r})",
    "dist.gather({x}, two := [torch.zeros_like({x}) for _ in range(2)] if rank == {r} else None, dst={r})",
    "said = [None, None]; dist.all_gather_object(said, [rank, {x}.shape]); assert said[1][0] == 1",
    "w = dist.all_reduce({x}, async_op=True); {new} = torch.ones(5, device={x}.device) * 2; w.wait(); {new} += {x}.sum(); {new} = {new}[:4]",
    "w = dist.broadcast({x}, {r}, async_op=True); w.wait(); {x}.add_(1)",
    "v = {x} + 1; w = dist.all_reduce(v, async_op=True); del v; w.wait()",
    "some = dist.new_group([0, 1], timeout=seconds); dist.all_reduce({x}, group=some)",
    "some = dist.new_group([{r}], timeout=seconds); rank == {r} and dist.all_reduce({x}, group=some)",
    "dist.all_reduce({x}); {x}.mul_(0.5)",
    "dist.all_reduce({x}[::2]) if {x}[::2].is_contiguous() else None",
]
LOCAL = [
    "{new} = {x} + 1",
    "{x}.mul_(0.5)",
    "{new} = {x}.flip(0) * 2",
    "{x}.copy_({y}) if {x}.shape == {y}.shape else None",
    "{x}.clamp_(-100, 100)",
]


def make(seed):
    choose = random.Random(seed)
    names = []
    for count in range(choose.randint(3, 14)):
        new = f"t{count}"
        if not names or choose.random() < 0.2:
            shape = choose.choice(("(4,)", "(2, 6)", "(64, 64)", "(2, 30000)", "(0,)", "(2,)"))
            dtype = choose.choice(("float32", "float32", "float64", "int64", "float16", "int32"))
            yield f"{new} = tensor({shape}, {dtype!r}, {count} + 10 * rank)"
            names.append(new)
            continue
        table = OPERATIONS if choose.random() < 0.7 else LOCAL
        template = choose.choice(table)
        yield template.format(
            x=choose.choice(names), y=choose.choice(names), r=choose.randrange(2), new=new
        )
        if "{new}" in template:
            names.append(new)
    yield choose.choice(OPERATIONS).format(x=names[-1], y=names[0], r=0, new="last")


# One rank: runs the lines with gloo, and then with the device's library.
def run(lines, rank, backend, device, store):
    import torch
    import torch.distributed as dist

    seconds = datetime.timedelta(seconds=30)
    dist.init_process_group(backend, store=store, rank=rank, world_size=RANKS, timeout=seconds)

    def tensor(shape, dtype, seed):
        numbers = torch.Generator().manual_seed(seed)
        return torch.randint(-4, 5, shape, generator=numbers).to(getattr(torch, dtype)).to(device)

    def wrong(x):
        return x + rank if device != "cpu" else x.clone()

    space = {"torch": torch, "dist": dist, "rank": rank, "tensor": tensor, "wrong": wrong}
    space["seconds"], error = seconds, None
    try:
        for line in lines:
            exec(line, space)
    except Exception as raised:
        error = raised
    if backend == "gloo":
        KEPT.extend((dist.group.WORLD, space.get("some")))
    with contextlib.suppress(Exception):
        dist.destroy_process_group()
    tensors = {n: t for n, t in space.items() if n[0] in "tl" and isinstance(t, torch.Tensor)}
    return error, tensors


NO_PROGRAM = "gloo refuses it"
KEPT = []  # A thread of gloo may drop the last reference to its group, and would then join itself.


def verdict(lines, rank, folder):
    import torch
    import torch.distributed as dist
    from comparing import difference

    device = f"openreg:{rank}"
    torch.openreg.set_device(rank)
    error, wanted = run(lines, rank, "gloo", "cpu", dist.FileStore(f"{folder}/gloo", RANKS))
    if error is not None:
        return NO_PROGRAM
    error, found = run(lines, rank, "orccl", device, dist.FileStore(f"{folder}/orccl", RANKS))
    if error is not None:
        return f"rank {rank}: only the device raises {type(error).__name__}: {str(error)[:300]}"
    torch.openreg.synchronize()
    for name, tensor in wanted.items():
        if told := difference(tensor, found[name]):
            return f"rank {rank}: {name} {told}"
    return None


def one_rank(rank):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import torch  # noqa: F401

    print("null", file=answers, flush=True)  # It may take long until it is ready.
    for request in map(json.loads, sys.stdin):
        try:
            told = verdict(request["lines"], rank, request["folder"])
        except Exception as error:
            told = f"rank {rank}: {type(error).__name__}: {str(error)[:500]}"
        print(json.dumps(told), file=answers, flush=True)


# The process of run.py's worker asks both ranks, and starts new ones after a failure.
class Ranks:
    def __init__(self):
        self.asked, self.errors = 0, tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.processes = [
            subprocess.Popen(
                [sys.executable, __file__, str(rank)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.errors,
                env={
                    **os.environ, "GLOO_SOCKET_IFNAME": "lo", "OPENREG_DEVICE_COUNT": str(RANKS),
                    "OPENREG_DEVICE_MEMORY": "512M", "PYTHONWARNINGS": "ignore",
                },
            )
            for rank in range(RANKS)
        ]  # fmt: skip
        for process in self.processes:
            self.answer(process)

    def ask(self, lines):
        self.asked += 1
        with tempfile.TemporaryDirectory() as folder:
            request = json.dumps({"lines": lines, "folder": folder}).encode() + b"\n"
            for process in self.processes:
                process.stdin.write(request)
                process.stdin.flush()
            told = [self.answer(process) for process in self.processes]
        # If it is one on one rank only, the other has waited in vain.
        return None if NO_PROGRAM in told else next(filter(None, told), None)

    def answer(self, process):
        if not select.select([process.stdout], [], [], PATIENCE)[0]:
            self.end()
            return "a rank takes too long"
        line = process.stdout.readline()
        if not line:
            return self.how_it_ended(process)
        return json.loads(line)

    def ended(self):
        while all(process.poll() is None for process in self.processes):
            time.sleep(0.1)
        return next(self.how_it_ended(each) for each in self.processes if each.poll() is not None)

    def how_it_ended(self, process):
        self.errors.seek(0)
        return f"a rank ends with {process.wait()}: {self.errors.read()[-1000:]}"

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


kept = []


def judge(lines):
    if kept and kept[0].asked == LONGEST:
        kept.pop().end()
    if not kept:
        kept.append(Ranks())
    try:
        told = kept[0].ask(lines)
    except BrokenPipeError:
        told = f"after the last program, {kept[0].ended()}"
    if told or any(process.poll() is not None for process in kept[0].processes):
        kept.pop().end()
    return told


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    one_rank(int(sys.argv[1]))
