# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own tests of process groups, run on our device.

    judge.py [--ranks 4] [--only PATTERN]     prints how each test ended

The tests are those of `DistributedTest` in the installed wheel. They were written for NCCL and
CUDA; where they name these, the text is changed before it is compiled. The ranks stay for all
tests. When one hangs or dies, the others are ended too, and new ones go on with the next test.
"""

import argparse
import collections
import contextlib
import json
import os
import re
import signal
import sys
import tempfile
import time
import types
import unittest
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from on_ranks import Ranks

# Longer than the timeout of the groups, so that a hang is one of the process.
LIMIT = 60
TIMEOUT = timedelta(seconds=20)
WORDS = [
    ("from torch.cuda.amp import autocast, GradScaler",
     "import functools\n"
     'autocast = functools.partial(torch.amp.autocast, "openreg")\n'
     'GradScaler = functools.partial(torch.amp.GradScaler, "openreg")'),
    ("import torch.cuda\n", ""),
    ("torch.cuda.nccl.version()", "(9, 9)"),
    ("torch.cuda.", "torch.openreg."),
    (".cuda(", ".openreg("),
    ('"cuda"', '"openreg"'),
    ('"cuda:', '"openreg:'),
    ("is_cuda", "is_openreg"),
    ('"nccl"', '"orccl"'),
    ("dist.Backend.NCCL", "dist.Backend.ORCCL"),
    ("dist.is_nccl_available()", "True"),
    ("torch.DoubleTensor(1)", "torch.empty(1, dtype=torch.float64)"),
]  # fmt: skip
# Tensors in these are of the host, because their programs compare them or draw from its generator.
ON_THE_HOST = {
    "test_DistributedSampler_padding", "test_all_gather_object_default_pg",
    "test_all_gather_object_subgroup", "test_ddp_device", "test_gather_object",
    "test_gather_object_subgroup", "test_scatter_object_list",
}  # fmt: skip


def load():
    """PyTorch's class of tests, with our words in it."""
    os.environ.update(BACKEND="orccl", TEMP_DIR=tempfile.gettempdir())
    os.environ.setdefault("WORLD_SIZE", "1")
    import torch
    import torch.testing._internal.common_distributed as common

    def always(*_, **__):
        return lambda test: test

    # What these decorators count are devices of CUDA; and eight ranks, where three are enough.
    common.skip_if_no_gpu = common.skip_if_small_worldsize = lambda test: test
    common.skip_if_lt_x_gpu = common.nccl_skip_if_lt_x_gpu = always
    common.require_n_gpus_for_nccl_backend = common.requires_nccl_version = always
    common.init_multigpu_helper = lambda size, _: {rank: [rank] for rank in range(size)}
    for feature in ("gpu", "openreg", "ddp", "subgroup", "plugin"):
        common.DistTestCases.backend_feature[feature] = {"orccl"}
    for feature in ("allgather_coalesced", "cpu barrier"):
        common.DistTestCases.skip_collective[feature].add("orccl")
    source = Path(common.__file__).with_name("distributed") / "distributed_test.py"
    text = source.read_text("utf-8")
    for theirs, ours in WORDS:
        text = text.replace(theirs, ours)
    module = types.ModuleType("openreg_distributed_test")
    module.__file__ = str(source)
    sys.modules[module.__name__] = module
    exec(compile(text, str(source), "exec"), module.__dict__)
    base = (module.TestDistBackend, module.DistributedTest._DistTestBase)
    module.Judged = type("Judged", base, {"__module__": module.__name__})
    torch.set_num_threads(1)
    return module


def tests_of(module):
    return sorted(name for name in dir(module.Judged) if name.startswith("test_"))


class Rank:
    """One process, which runs test after test."""

    def __init__(self, folder):
        import torch
        import torch.distributed as dist
        import torch.testing._internal.common_distributed as common

        self.dist, self.folder, self.module = dist, Path(folder), load()
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        torch.openreg.set_device(self.rank)
        self.skips = {skip.exit_code: skip.message for skip in common.TEST_SKIPS.values()}
        self.store = dist.FileStore(str(self.folder / "store"), self.size)
        self.module.Barrier.sync = lambda wait_for=None, timeout=10: self.meet(timeout, wait_for)
        self.meetings = collections.Counter()

    def meet(self, seconds, count=None):
        """What the tests do with files, and a tenth of a second at a time."""
        self.meetings[self.name] += 1
        key, end = f"{self.name}/{self.meetings[self.name]}", time.monotonic() + seconds
        self.store.add(key, 1)
        while int(self.store.get(key)) < (count or self.size):
            if time.monotonic() > end:
                raise TimeoutError(f"not all ranks have come to {key}")
            time.sleep(0.01)

    def run(self, name):
        import torch

        self.name = name
        folder = self.folder / name
        for part in ("barrier", "test_dir", "init_dir"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        init = f"file://{folder}/init_dir/shared_init_file"
        os.environ.update(TEMP_DIR=str(folder), INIT_METHOD=init)
        self.module.INIT_METHOD = init
        # Some tests leave a level behind, with which PyTorch words its errors differently.
        os.environ.pop("TORCH_DISTRIBUTED_DEBUG", None)
        self.dist.set_debug_level_from_env()
        test = self.module.Judged(name)
        test.rank, test.file_name, test.skip_return_code_checks = self.rank, f"{folder}/file", []
        torch.manual_seed(0)
        self.meet(LIMIT)
        options = {"world_size": self.size, "rank": self.rank, "timeout": TIMEOUT}
        self.dist.init_process_group("orccl", f"file://{folder}/group", **options)
        # Where a test names no device it means any that the group can reach.
        with torch.device("cpu" if name in ON_THE_HOST else f"openreg:{self.rank}"):
            getattr(test, name)()
        self.meet(30)

    def judge(self, name):
        """(result, why) of one test."""
        try:
            self.run(name)
            found = ("pass", "")
        except SystemExit as end:
            found = ("skip", self.skips.get(end.code, str(end.code)))
        except unittest.SkipTest as skip:
            found = ("skip", str(skip))
        except BaseException as error:
            told = str(error).partition("\n\nTo execute this test")[0]
            found = ("fail", f"{type(error).__name__}: {told}")
        try:
            if self.dist.is_initialized():
                if found[0] == "fail":
                    self.dist.distributed_c10d._abort_process_group()
                else:
                    self.dist.destroy_process_group()
        except Exception as error:
            found = ("fail", f"{found[1]} and at the end {type(error).__name__}: {error}")
        if found[0] == "fail":
            # A stream may still wait for a result of the group; the next test must not hear of it.
            with contextlib.suppress(RuntimeError):
                sys.modules["torch"].accelerator.synchronize()
        self.dist.distributed_c10d._world.group_count = 0
        if "torch._dynamo" in sys.modules:
            sys.modules["torch"]._dynamo.reset()
        return found


def one_rank(folder, names):
    import faulthandler

    faulthandler.register(signal.SIGUSR1)
    rank = Rank(folder)
    for name in names:
        print(json.dumps({"begins": name}), flush=True)
        result, why = rank.judge(name)
        print(json.dumps({"ended": name, "result": result, "why": why}), flush=True)


# Worst last: a test ends as on the rank where it went worst.
RESULTS = ("pass", "skip", "fail", "crash", "hang")


def watch(ranks):
    """Waits until all ranks have ended, or until one has died, or none gets any further."""
    seen, since = None, time.monotonic()
    while None in (codes := [process.poll() for process in ranks.processes]):
        sizes = [ranks.path(rank, "out").stat().st_size for rank in range(len(codes))]
        if sizes != seen:
            seen, since = sizes, time.monotonic()
        if any(codes):
            time.sleep(1)
            return "crash"
        if time.monotonic() - since > LIMIT + 30:
            return "hang"
        time.sleep(0.1)
    return "crash" if any(codes) else ""


def judge(size, names, folder):
    """How each test ended: {name: (result, why)}."""
    found, left, turn = {}, list(names), 0
    while left:
        turn += 1
        place = Path(folder) / str(turn)
        place.mkdir()
        words = ("--rank", place, *left)
        with Ranks(__file__, size, *words, folder=place, OPENREG_DEVICE_MEMORY="2G") as ranks:
            broken = watch(ranks)
            if broken == "hang":
                for process in ranks.processes:
                    process.send_signal(signal.SIGUSR1)
                time.sleep(1)
        begun = set()
        for rank in range(size):
            current = None
            for line in ranks.out(rank).splitlines():
                answer = json.loads(line) if line.startswith('{"') else {}
                if "begins" in answer:
                    current = answer["begins"]
                    begun.add(current)
                elif "ended" in answer:
                    current = None
                    keep(found, answer["ended"], answer["result"], answer["why"])
            if broken and current:
                keep(found, current, broken, ranks.err(rank)[-1000:])
        if broken and not begun:
            raise RuntimeError(f"The ranks {broken} before the first test:\n{ranks.err(0)}")
        left = [name for name in left if name not in begun]
    return found


def keep(found, name, result, why):
    before, whys = found.get(name, (RESULTS[0], ""))
    if RESULTS.index(result) > RESULTS.index(before):
        found[name] = (result, why)
    elif result == before:
        found[name] = (result, whys if why in whys else f"{whys}\n{why}")


def all_names():
    return tests_of(load())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--only", default=".")
    parser.add_argument("--rank", nargs="+")
    options = parser.parse_args()
    if options.rank:
        return one_rank(options.rank[0], options.rank[1:])
    names = [name for name in all_names() if re.search(options.only, name)]
    with tempfile.TemporaryDirectory() as folder:
        found = judge(options.ranks, names, folder)
    for name, (result, why) in sorted(found.items()):
        if result != "pass":
            print(f"{name}: {result}: {' '.join(why.split())[:700]}")
    print(dict(collections.Counter(result for result, _ in found.values())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
