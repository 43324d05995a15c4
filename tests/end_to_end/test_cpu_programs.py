# SPDX-License-Identifier: BSD-3-Clause
"""What a program for the CPU notices of a backend that is installed, and what not.

It is run twice, with autoload and without. What it computes and writes is the same. What it leaves
to PyTorch is not: the page has a table, which is read and run here.
"""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import differences
import pytest
import torch

PROGRAMS = {
    "random numbers": """
torch.manual_seed(3)
print(torch.rand(3), torch.randperm(5), torch.initial_seed())
with torch.random.fork_rng(devices=[], device_type="cpu"):
    torch.manual_seed(4)
print(torch.rand(2), torch.get_rng_state().sum())
""",
    "files": """
file = io.BytesIO()
model = torch.nn.Linear(2, 1)
torch.nn.init.ones_(model.weight)
torch.nn.init.zeros_(model.bias)
torch.save((model.state_dict(), copy.deepcopy(model.weight)), file)
print(hashlib.sha256(file.getvalue()).hexdigest())
file.seek(0)
print(torch.load(file))
""",
    "data loaders": """
torch.manual_seed(5)
data = torch.utils.data.TensorDataset(torch.arange(8.0), torch.rand(8))
for workers in (0, 2):
    print(list(torch.utils.data.DataLoader(data, batch_size=3, shuffle=True, num_workers=workers)))
""",
    "messages": """
queue = torch.multiprocessing.SimpleQueue()
queue.put(torch.nn.Parameter(torch.arange(3.0)))
print(queue.get(), torch.ones(2).share_memory_().is_shared())
""",
    "training": """
torch.manual_seed(6)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(), torch.nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    optimizer.zero_grad()
    loss = model(torch.ones(2, 4)).square().sum()
    loss.backward()
    optimizer.step()
    print(loss.item())
""",
}


def run(program, autoload, **options):
    return subprocess.run(
        [sys.executable, "-c", "import copy, hashlib, io, torch\n" + program],
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": autoload},
        capture_output=True,
        text=True,
        **options,
    )


@pytest.fixture(scope="module")
def said():
    """What each program printed, with the backend and without, and what went to stderr."""
    all_of_them = "".join(f"print('== {name}')\n{code}" for name, code in PROGRAMS.items())
    both = {}
    for autoload, check in {
        "1": f"assert torch.openreg.is_initialized() == {bool(differences.CAPTURABLE_CHECKED)}",
        "0": "assert not hasattr(torch, 'openreg')",
    }.items():
        done = run(all_of_them + check, autoload)
        assert done.returncode == 0, done.stderr
        parts = done.stdout.split("== ")[1:]
        both[autoload] = dict(part.split("\n", 1) for part in parts), done.stderr
    return both


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_says_the_same_with_the_backend_and_without(said, name):
    assert said["1"][0][name] == said["0"][0][name] != ""


def test_nothing_is_warned_of_in_addition(said):
    assert said["1"][1] == said["0"][1]


with open(Path(__file__).with_name("cpu_programs.csv"), encoding="utf-8") as table:
    ROWS = [[cell.replace("`", "") for cell in row] for row in csv.reader(table)][1:]
# One process for all rows; each says what came of it.
DRIVER = """
import json, sys, warnings
from timeit import default_timer
import torch.distributed as dist
from torch.distributed import init_device_mesh, init_process_group
from torch.distributed.fsdp import fully_shard
from torch.nn import DataParallel
from torch.nn.attention.flex_attention import create_block_mask, create_mask
from torch.profiler import ProfilerActivity, profile
from torch.random import fork_rng
from torch.utils.benchmark import Timer
from torch.utils.data import DataLoader

alone = {"store": dist.HashStore(), "rank": 0, "world_size": 1}
ones = torch.ones(1, 1)
causal = lambda batch, head, query, key: query >= key
warnings.simplefilter("error")
ends = []
for code in json.load(sys.stdin):
    linear = torch.nn.Linear(1, 1)
    try:
        ends.append(str(eval(code)))
    except Exception as error:
        ends.append(f"{type(error).__name__}: {error}")
    if dist.is_initialized():
        dist.destroy_process_group()
print(json.dumps(ends))
"""


@pytest.fixture(scope="module")
def ends():
    """How each row's two programs end, with the backend and without."""
    codes = json.dumps([code for row in ROWS for code in (row[0], row[3])])
    both = {}
    for autoload in "10":
        done = run(DRIVER, autoload, input=codes)
        assert done.returncode == 0, done.stderr
        both[autoload] = json.loads(done.stdout)
    return both


@pytest.mark.parametrize("number", range(len(ROWS)), ids=[row[0] for row in ROWS])
def test_what_a_program_leaves_open_is_the_accelerators_and_what_it_names_is_not(ends, number):
    _, *cells, _ = ROWS[number]
    for autoload, cell in zip("01", cells, strict=True):
        left_open, named = ends[autoload][2 * number : 2 * number + 2]
        assert "Error" not in named and named == ends["0"][2 * number + 1]
        if autoload == "0" and torch.version.cuda:
            continue  # Without us, that PyTorch answers as if it had a GPU.
        begin = cell.removesuffix("…").strip()
        assert left_open == cell or (cell.endswith("…") and left_open.startswith(begin))


def test_torchrun_counts_devices_and_not_processors(monkeypatch):
    monkeypatch.setenv("OPENREG_DEVICE_COUNT", str(os.cpu_count() + 1))
    program = (
        "import os\n"
        "from torch.distributed.run import determine_local_world_size as count\n"
        "print(count('auto') - os.cpu_count(), count('cpu') - os.cpu_count())"
    )
    assert [run(program, autoload).stdout for autoload in "01"] == ["0 0\n", "1 0\n"]
