# SPDX-License-Identifier: BSD-3-Clause
"""A program for the CPU does not notice that a backend is installed.

It is run twice, with autoload and without, and must print the same.
"""

import os
import subprocess
import sys

import pytest

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


def run(program, autoload):
    return subprocess.run(
        [sys.executable, "-c", "import copy, hashlib, io, torch\n" + program],
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": autoload},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def said():
    """What each program printed, with the backend and without, and what went to stderr."""
    all_of_them = "".join(f"print('== {name}')\n{code}" for name, code in PROGRAMS.items())
    both = {}
    for autoload, check in {
        "1": "assert not torch.openreg.is_initialized()",
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


def test_pinning_is_the_one_thing_that_is_new():
    program = (
        "for batch in torch.utils.data.DataLoader(torch.arange(4.0), pin_memory=True):\n"
        "    print(batch)\n"
        "print(torch.ones(2).pin_memory().is_pinned())"
    )
    batches = "tensor([0.])\ntensor([1.])\ntensor([2.])\ntensor([3.])\n"
    assert run(program, "1").stdout == batches + "True\n"
    without = run(program, "0")
    assert without.stdout == batches
    assert "accelerator" in without.stderr
