# SPDX-License-Identifier: BSD-3-Clause
"""Every call of the driver that can fail does, once, in each of thirty programs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
import every_fault
import every_loss
from every_fault import KINDS, Trial
from programs import PROGRAMS

TABLE = Path(__file__).with_name("every_fault.txt").read_text().splitlines()
# The counts are those of one release of PyTorch; that every run ends as it must holds for all.
COUNTED_WITH = "2.13"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_right_or_raises_whichever_call_fails(name):
    trial = Trial(name)
    counts = [trial.calls(kind) for kind in KINDS]
    assert sum(counts) > 0
    if torch.__version__.startswith(COUNTED_WITH):
        [line] = [line.split() for line in TABLE if line.startswith(name + " ")]
        assert [int(count) for count in line[1:5]] == counts


def test_the_table_has_every_program_and_their_sum():
    head, *lines, total = [line.split() for line in TABLE]
    assert head == [*KINDS, "lost"]
    assert [line[0] for line in lines] == list(PROGRAMS)
    columns = zip(*[line[1:] for line in lines], strict=True)
    assert total[1:] == [
        str(sum(int(count) for count in column if count != "-")) for column in columns
    ]


def fails(function, *sentences):
    """That a trial of `function` fails with these words."""
    PROGRAMS["wrong"] = function
    try:
        with pytest.raises(AssertionError) as error:
            trial = Trial("wrong")
            for kind in KINDS:
                trial.calls(kind)
    finally:
        del PROGRAMS["wrong"]
        every_fault.inject(None)
        torch.openreg.reset_device(every_fault.DEVICE)
    for sentence in sentences:
        assert sentence in str(error.value)


def large(device):
    """Too large for what other programs left in the cache."""
    return torch.empty(9 << 20, device=device).fill_(1)


def test_a_program_that_hides_the_failure_is_found():
    def wrong(device):
        try:
            return large(device).sum(0, keepdim=True).tolist()
        except RuntimeError:
            return [0.0]

    fails(wrong, "wrong, alloc:1+: wrong numbers, and no error")


def test_a_program_that_keeps_memory_after_a_failure_is_found():
    kept = []

    def wrong(device):
        x = torch.ones(3, device=device)
        try:
            return x.tolist()
        except RuntimeError:
            kept.append(torch.empty(9 << 20, device=device))
            raise

    fails(wrong, "wrong, copy:", "is held, and")


def test_a_program_that_raises_another_class_is_found():
    def wrong(device):
        try:
            return large(device)[:3].tolist()
        except torch.OutOfMemoryError as error:
            raise RuntimeError("something else") from error

    fails(wrong, "wrong, alloc:1+: RuntimeError('something else')")


def test_a_device_may_be_lost_at_every_launch_and_copy():
    points = every_loss.all_points()
    assert list(points) == every_loss.NAMES
    if torch.__version__.startswith(COUNTED_WITH):
        in_table = {line.split()[0]: line.split()[5] for line in TABLE[1:-1]}
        assert {name: str(points.get(name, "-")) for name in PROGRAMS} == in_table


A_THOUSAND_TIMES = """
import os, torch
model = torch.nn.Linear(1 << 18, 1, bias=False, device="openreg")
optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
torch.openreg.synchronize()

def step(size):
    optimizer.zero_grad()
    model(torch.ones(size, 1 << 18, device="openreg")).square().mean().backward()
    optimizer.step()

def grown():
    with open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    stats = torch.openreg.memory_stats()
    return resident >> 20, stats["allocated_bytes.all.current"], len(os.listdir("/proc/self/fd"))

halved = 0
for i in range(1010):
    size = 64
    while True:
        try:
            step(size)
            break
        except torch.OutOfMemoryError:
            pass
        size, halved = size // 2, halved + 1
    if i == 9:
        first, halved = grown(), 0
print(size, halved, first, grown(), sep=";")
"""


def test_a_loop_that_halves_its_batch_a_thousand_times_does_not_grow():
    result = subprocess.run(
        [sys.executable, "-c", A_THOUSAND_TIMES],
        env={**os.environ, "OPENREG_DEVICE_MEMORY": "48M"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    size, halved, first, last = map(eval, result.stdout.split(";"))
    assert size == 32 and halved == 1000
    assert last[1:] == first[1:]
    assert last[0] - first[0] < 32, "MiB of the host's memory"
