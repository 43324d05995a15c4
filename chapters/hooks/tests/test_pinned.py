# SPDX-License-Identifier: BSD-3-Clause
import torch
import torch_openreg  # noqa: F401


def test_memory_is_pinned_and_keeps_its_content():
    pinned = torch.arange(5).pin_memory()
    assert pinned.is_pinned()
    assert pinned[2:].is_pinned()
    assert pinned.tolist() == [0, 1, 2, 3, 4]
    assert not torch.arange(5).is_pinned()


def test_a_tensor_can_be_made_in_pinned_memory():
    assert torch.empty(3, pin_memory=True).is_pinned()


def test_freed_memory_is_kept_for_the_next_until_the_cache_is_emptied():
    torch.UntypedStorage(1, device="openreg")  # Until then, PyTorch does not ask for this cache.
    torch.accelerator.empty_host_cache()
    first = torch.empty(1000, pin_memory=True)
    stats = torch.openreg.host_memory_stats()
    address, held = first.data_ptr(), stats["active_bytes.current"]
    assert held >= 4096
    assert stats["allocated_bytes.current"] == held
    del first
    assert torch.openreg.host_memory_stats()["active_bytes.current"] == held - 4096
    assert torch.openreg.host_memory_stats()["allocated_bytes.current"] == held
    second = torch.empty(1000, pin_memory=True)
    assert second.data_ptr() == address
    del second
    torch.accelerator.empty_host_cache()
    assert torch.openreg.host_memory_stats()["allocated_bytes.current"] == held - 4096


def test_the_statistics_begin_anew_when_told_to():
    held = torch.empty(1000, pin_memory=True)
    torch.empty(100_000, pin_memory=True)
    torch.openreg.reset_peak_host_memory_stats()
    torch.openreg.reset_accumulated_host_memory_stats()
    stats = torch.openreg.host_memory_stats()
    assert stats["active_bytes.peak"] == stats["active_bytes.current"] >= held.nbytes
    assert stats["active_bytes.allocated"] == stats["num_host_alloc"] == 0


def test_a_data_loader_pins_its_batches():
    loader = torch.utils.data.DataLoader(torch.arange(6.0), batch_size=3, pin_memory=True)
    assert [batch.is_pinned() for batch in loader] == [True, True]
