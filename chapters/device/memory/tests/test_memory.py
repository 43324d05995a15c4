# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
from running import printed


def test_nothing_is_allocated_at_first():
    assert torch.accelerator.memory_allocated() == torch.openreg.memory_allocated("openreg:1") == 0


def test_the_device_tells_how_much_memory_it_has():
    free, total = torch.openreg.mem_get_info()
    assert 0 < free <= total
    assert (free, total) == torch.accelerator.get_memory_info("openreg:0")


def test_statistics_have_the_names_of_every_accelerator():
    stats = torch.openreg.memory_stats()
    assert stats["allocated_bytes.all.current"] == 0
    torch.accelerator.reset_peak_memory_stats()
    torch.accelerator.reset_accumulated_memory_stats()
    torch.openreg.empty_cache()
    assert torch.openreg.memory_reserved() == 0


def test_the_summary_has_each_statistic():
    storage = torch.UntypedStorage(5000, device="openreg")
    stats, summary = torch.openreg.memory_stats(), torch.openreg.memory_summary("openreg:0")
    rows = {row[0]: row[1:] for row in (line.split() for line in summary.splitlines())}
    assert rows.pop("openreg:0") == ["current", "peak", "allocated", "freed"]
    found = {}
    for name, numbers in rows.items():
        columns = [".current", ".peak", ".allocated", ".freed"] if len(numbers) > 1 else [""]
        for column, number in zip(columns, numbers, strict=True):
            found[name + column] = int(number.replace(",", ""))
    assert found == stats and found["allocated_bytes.all.current"] >= storage.nbytes()
    short = torch.openreg.memory_summary(abbreviated=True)
    assert "_pool" in summary and "_pool" not in short and "allocated_bytes.all" in short


def test_a_snapshot_tells_of_small_and_large_blocks_in_use():
    for bytes, kind in ((1000, "small"), (32 << 20, "large")):
        storage = torch.UntypedStorage(bytes, device="openreg")
        found = [
            (segment["segment_type"], block["state"], block["requested_size"])
            for segment in torch.openreg.memory_snapshot()
            for block in segment["blocks"]
            if block["address"] == storage.data_ptr()
        ]
        assert found == [(kind, "active_allocated", bytes)]


GUARDED = """
import torch, torch_openreg
free, _ = torch.openreg.mem_get_info()
storage = torch.UntypedStorage(1000, device="openreg")
del storage
torch.accelerator.synchronize()
stats = torch.accelerator.memory_stats()
print(*(stats[name] for name in ("num_device_alloc", "num_device_free")))
print(torch.openreg.mem_get_info()[0] == free)
print(*(stats[f"{name}.all.current"] for name in ("segment", "reserved_bytes")))
"""


@pytest.mark.simulator  # it guards memory
def test_guarded_memory_that_is_freed_goes_back_and_is_counted():
    assert printed(GUARDED, OPENREG_SANITIZE="memory") == "1 1\nTrue\n0 0\n"
