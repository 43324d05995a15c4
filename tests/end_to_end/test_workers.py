# SPDX-License-Identifier: BSD-3-Clause
"""Workers of a `DataLoader`, started in each way, while the device is in use."""

import subprocess
import sys

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

METHODS = ["fork", "spawn", "forkserver"]


class OnCpu(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.full((3,), float(index)), torch.rand(()).item()


class OnDevice(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.full((3,), float(index), device="openreg")


def first(batch):
    """Keeps what the dataset made: collating would stack it."""
    return batch[0]


@pytest.mark.parametrize("method", METHODS)
def test_workers_prepare_batches_that_are_pinned_here(method):
    torch.ones(1, device="openreg")
    loader = DataLoader(
        OnCpu(), batch_size=4, num_workers=2, pin_memory=True, multiprocessing_context=method
    )
    torch.manual_seed(1)
    rows, numbers = zip(*loader, strict=True)
    assert all(row.is_pinned() for row in rows)
    there = torch.cat([row.to("openreg", non_blocking=True) for row in rows])
    assert there.sum().item() == 3 * sum(range(8))
    torch.manual_seed(1)
    again = DataLoader(OnCpu(), batch_size=4, num_workers=2, multiprocessing_context=method)
    assert torch.equal(torch.cat(numbers), torch.cat([batch[1] for batch in again]))


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_new_processes_may_use_the_device_and_send_what_they_made(method):
    loader = DataLoader(OnDevice(), num_workers=1, collate_fn=first, multiprocessing_context=method)
    assert [batch.sum().item() for batch in loader] == [0, 3, 6, 9]


def test_a_forked_worker_is_told_to_spawn():
    torch.ones(1, device="openreg")
    loader = DataLoader(OnDevice(), num_workers=1, collate_fn=first, multiprocessing_context="fork")
    with pytest.raises(RuntimeError, match="you must use the 'spawn' start method"):
        list(loader)


def test_forked_workers_use_the_device_for_one_epoch_if_it_has_not_started():
    program = (
        "import torch\n"
        "def there(rows): return torch.stack(rows).to('openreg:1')\n"
        "def epoch():\n"
        "    loader = torch.utils.data.DataLoader(torch.arange(4.0), batch_size=2, num_workers=1,\n"
        "        collate_fn=there, multiprocessing_context='fork')\n"
        "    return [batch.tolist() for batch in loader]\n"
        "print(epoch(), torch.openreg.is_initialized(), flush=True)\n"
        "epoch()\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stdout == "[[0.0, 1.0], [2.0, 3.0]] True\n"
    assert result.stderr.endswith("you must use the 'spawn' start method\n\n")
