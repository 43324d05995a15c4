# SPDX-License-Identifier: BSD-3-Clause
import torch
import torch_openreg  # noqa: F401


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
