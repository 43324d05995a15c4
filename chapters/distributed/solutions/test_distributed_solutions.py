# SPDX-License-Identifier: BSD-3-Clause
"""The tests of the exercises, which run on four ranks."""

import os
import traceback
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from half_gradients import half_gradients
from ring import ring_all_reduce
from torch.nn.parallel import DistributedDataParallel
from two_levels import TwoLevels

RANKS = 4
# The names of the functions below that each rank runs.
EXERCISES = ("hook", "ring", "two_levels")


def gradients(device, hook):
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(6, 3).to(device))
    if hook:
        model.register_comm_hook(dist.group.WORLD, hook)
    torch.manual_seed(dist.get_rank())
    model(torch.randn(8, 6).to(device)).pow(2).mean().backward()
    return model.module.weight.grad.cpu()


def hook(device):
    found, exact = gradients(device, half_gradients), gradients(device, None)
    torch.testing.assert_close(found, exact, rtol=2e-2, atol=1e-3)
    assert not torch.equal(found, exact), "bfloat16 has eight bits"


def ring(device):
    three = dist.new_group([0, 1, 2])
    for numbers in (1, 7, 1000):
        x = torch.arange(numbers, dtype=torch.float32, device=device) * (dist.get_rank() + 1)
        expected = x.clone()
        if dist.get_rank() < 3:
            dist.all_reduce(expected, group=three)
            ring_all_reduce(x, three)
            torch.testing.assert_close(x, expected)


def two_levels(device):
    levels = TwoLevels(2)
    x = torch.arange(24, dtype=torch.float32, device=device).view(4, 6) + dist.get_rank()
    expected = x.clone()
    dist.all_reduce(expected)
    levels.all_reduce(x)
    torch.testing.assert_close(x, expected)


def one_rank(rank, folder):
    """Writes for each exercise why it failed on this rank, or nothing."""
    torch.set_num_threads(1)
    device = torch.device("openreg", rank)
    for name in EXERCISES:
        dist.init_process_group(
            init_method=f"file://{folder}/{name}",
            rank=rank,
            world_size=RANKS,
            device_id=device,
            timeout=timedelta(seconds=20),
        )
        try:
            globals()[name](device)
            why = ""
        except Exception as error:
            why = f"{error!r}\n{traceback.format_exc()}"
        Path(folder, f"{name}.{rank}").write_text(why)
        dist.destroy_process_group()


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    """Why an exercise failed, on all ranks."""
    folder = tmp_path_factory.mktemp("ranks")
    os.environ["OPENREG_DEVICE_COUNT"] = str(RANKS)
    torch.multiprocessing.spawn(one_rank, (folder,), nprocs=RANKS)

    def of(exercise):
        files = (Path(folder, f"{exercise.__name__}.{rank}") for rank in range(RANKS))
        return "".join(file.read_text() for file in files)

    return of


def test_our_hook_sends_half_the_bytes_and_nearly_the_same_gradients(problems):
    assert problems(hook) == ""


def test_our_ring_returns_what_all_reduce_returns(problems):
    assert problems(ring) == ""


def test_our_two_levels_return_what_all_reduce_returns(problems):
    assert problems(two_levels) == ""
