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


def test_the_host_cache_can_be_emptied():
    torch.empty(1000, pin_memory=True)
    torch.accelerator.empty_host_cache()


def test_a_data_loader_pins_its_batches():
    loader = torch.utils.data.DataLoader(torch.arange(6.0), batch_size=3, pin_memory=True)
    assert [batch.is_pinned() for batch in loader] == [True, True]


def test_a_storage_is_allocated_and_resized():
    storage = torch.UntypedStorage(16, device="openreg")
    assert storage.device == torch.device("openreg:0")
    assert torch.openreg.memory_allocated() == 512
    storage.resize_(4096)
    assert storage.nbytes() == 4096
    assert torch.openreg.memory_allocated() == 4096
    storage.resize_(0)
    assert torch.openreg.memory_allocated() == 0
