# SPDX-License-Identifier: BSD-3-Clause
"""The tests of the exercises, which run on four ranks."""

import os
import traceback
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric_memory
from half_gradients import half_gradients
from host_groups import groups_of
from one_message import mean_of_all
from read_peers import gathered
from reason import reason
from ring import ring_all_reduce
from torch.nn.parallel import DistributedDataParallel
from two_levels import TwoLevels

RANKS = 4
# The names of the functions below that each rank runs.
EXERCISES = ("hook", "ring", "two_levels", "means", "reads", "late")


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


def means(device):
    rank, backend = dist.get_rank(), dist.group.WORLD._get_backend(device)
    columns = torch.full((3, 4), float(rank), device=device).t()
    tensors = [columns, torch.arange(5.0, device=device) * rank, torch.ones((), device=device)]
    before = backend._get_sequence_number_for_group()
    mean_of_all(tensors)
    assert backend._get_sequence_number_for_group() == before + 1, "one collective is enough"
    assert columns.tolist() == [[1.5] * 3] * 4
    assert tensors[1].tolist() == [0.0, 1.5, 3.0, 4.5, 6.0]
    assert tensors[2].item() == 1


def reads(device):
    rank = dist.get_rank()
    mine = symmetric_memory.empty(4, device=device).fill_(rank)
    for step in range(5):
        found = gathered(mine, dist.group.WORLD)
        mine.fill_(rank + 10 * (step + 1))
        assert found.tolist() == [[other + 10.0 * step] * 4 for other in range(RANKS)]
    dist.barrier()


def late(device):
    x = torch.ones(4, device=device)
    assert reason(dist.all_reduce(x, async_op=True), 20) is None
    assert x.tolist() == [4.0] * 4
    if dist.get_rank() == 0:
        sentence = reason(dist.all_reduce(x, async_op=True), 0.3)
        assert "of rank 0 was not done within 300 ms" in sentence


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


def test_our_message_has_the_means_of_all_tensors(problems):
    assert problems(means) == ""


def test_our_reads_are_those_of_all_ranks(problems):
    assert problems(reads) == ""


def test_our_reason_names_the_operation_that_is_late(problems):
    assert problems(late) == ""


def test_our_groups_join_equal_numbers_and_refuse_unequal_ones():
    assert groups_of("abab") == ([[0, 2], [1, 3]], [[0, 1], [2, 3]])
    assert groups_of(["x"] * 3) == ([[0, 1, 2]], [[0], [1], [2]])
    with pytest.raises(ValueError, match=r"they have {'a': 2, 'b': 1}"):
        groups_of("aba")
