# SPDX-License-Identifier: BSD-3-Clause
"""One rank of the processes that run cases: one_rank.py FOLDER CASE...

Prints a line of JSON for each case that it begins, and one for how it ended. Every case has process
groups of its own, so that a failure stays with its case.
"""

import datetime
import importlib
import json
import os
import sys
import traceback
from pathlib import Path

import torch
import torch.distributed as dist
from cases import CASES

MODULES = ("data_cases", "shard_cases", "tensor_cases", "saving_cases", "compiled_cases")
SECONDS = datetime.timedelta(seconds=20)  # for one collective
MEETING = datetime.timedelta(seconds=60)  # for the slowest rank to begin the next case
# A thread of gloo may drop the last reference to its group, and would then join itself.
KEPT = []


def load():
    """All cases by name."""
    for module in MODULES:
        importlib.import_module(module)
    return CASES


def run(case, backend, device, store):
    torch.manual_seed(1)
    dist.init_process_group(
        backend,
        store=store,
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
        timeout=SECONDS,
    )
    if backend == "gloo":
        KEPT.append(dist.group.WORLD)
    try:
        return case.run(device)
    finally:
        dist.destroy_process_group()
        if "torch._dynamo" in sys.modules:
            torch._dynamo.reset()


def meet(store, name):
    """Waits for all ranks, so that none counts another's last case as its own time."""
    store.set(f"{name}/{os.environ['RANK']}", "")
    store.wait([f"{name}/{rank}" for rank in range(int(os.environ["WORLD_SIZE"]))], MEETING)


def outcome(name, store, folder):
    """Why the case failed on this rank, or nothing."""
    case, results = CASES[name], []
    rank = int(os.environ["RANK"])
    for backend, device in (("gloo", "cpu"), (case.backend, f"openreg:{rank}")):
        os.environ["OPENREG_TEST_FOLDER"] = str(folder / f"{name}.{device[:3]}")
        try:
            meet(store, f"{name} {backend}")
            group = dist.PrefixStore(f"{name} {backend} group", store)
            results.append(run(case, backend, torch.device(device), group))
        except Exception:
            return f"on {device} with {backend}: {traceback.format_exc()}"
    try:
        torch.testing.assert_close(results[1], results[0], rtol=case.rtol, atol=case.rtol / 10)
    except AssertionError as error:
        return f"openreg differs from gloo: {error}"
    return ""


def main(folder, *names):
    load()
    torch.set_num_threads(1)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.openreg.set_device(rank)
    store = dist.FileStore(str(Path(folder) / "store"), size)
    for name in names:
        print(json.dumps({"begins": name}), flush=True)
        why = outcome(name, store, Path(folder))
        print(json.dumps({"ended": name, "error": why}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
