# SPDX-License-Identifier: BSD-3-Clause
"""What each rank does with a case: it runs the case with gloo on the CPU, then on openreg, and compares.

Every case has process groups of its own, so that a failure stays with its case.
"""

import contextlib
import datetime
import faulthandler
import os
import sys
import traceback
from pathlib import Path

import compiled_cases
import data_cases  # noqa: F401
import pytest
import saving_cases  # noqa: F401
import shard_cases  # noqa: F401
import tensor_cases  # noqa: F401
import torch
import torch.distributed as dist
from cases import CASES

sys.path.insert(0, str(Path(__file__).parents[1] / "process_group/tests"))
from ranks import Ranks

SECONDS = datetime.timedelta(seconds=20)  # for one collective
MEETING = datetime.timedelta(seconds=60)  # for the slowest rank to begin the next case
# A thread of gloo may drop the last reference to its group, and would then join itself.
KEPT = []


def names(size, slow=False):
    """The cases for this number of ranks."""
    compiled = compiled_cases.__name__
    chosen = (case for case in CASES.values() if slow == (case.run.__module__ == compiled))
    return [case.run.__name__ for case in chosen if case.size == size]


@contextlib.contextmanager
def ranks_with_devices(size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GLOO_SOCKET_IFNAME", "lo")
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("OPENREG_DEVICE_COUNT", str(size))
        patch.setenv("OPENREG_DEVICE_MEMORY", "512M")
        patch.setenv("PYTHONWARNINGS", "ignore")
        ranks = Ranks(size, group=serve)
    yield ranks
    assert ranks.end() == [0] * size


def serve(rank, size, path, backend, environment, calls):
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size)}
    torch.set_num_threads(1)
    torch.openreg.set_device(rank)
    store = dist.FileStore(path, size)
    while (call := calls.recv()) is not None:
        function, limit, arguments = call
        faulthandler.dump_traceback_later(limit, exit=True)
        calls.send((True, function(store, rank, size, *arguments)))
        faulthandler.cancel_dump_traceback_later()


def run(case, backend, device, store, rank, size):
    torch.manual_seed(1)
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=SECONDS)
    if backend == "gloo":
        KEPT.append(dist.group.WORLD)
    try:
        return case.run(device)
    finally:
        dist.destroy_process_group()
        if "torch._dynamo" in sys.modules:
            torch._dynamo.reset()


def outcome(store, rank, size, name, folder):
    """Why the case failed on this rank, or nothing."""
    case, results = CASES[name], []
    for backend, device in (("gloo", "cpu"), (case.backend, f"openreg:{rank}")):
        os.environ["OPENREG_TEST_FOLDER"] = f"{folder}/{name}.{device[:3]}"
        try:
            # All ranks meet, so that none counts another's last case as its own time.
            store.set(f"{name} {backend}/{rank}", "")
            store.wait([f"{name} {backend}/{each}" for each in range(size)], MEETING)
            group = dist.PrefixStore(f"{name} {backend} group", store)
            results.append(run(case, backend, torch.device(device), group, rank, size))
        except Exception:
            return f"on {device} with {backend}: {traceback.format_exc()}"
    try:
        torch.testing.assert_close(results[1], results[0], rtol=case.rtol, atol=case.rtol / 10)
    except AssertionError as error:
        return f"openreg differs from gloo: {error}"
    return ""
