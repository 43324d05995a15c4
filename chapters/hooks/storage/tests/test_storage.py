# SPDX-License-Identifier: BSD-3-Clause
import pytest
import torch
import torch_openreg  # noqa: F401


def test_a_storage_is_allocated_and_resized():
    before = torch.openreg.memory_allocated()
    storage = torch.UntypedStorage(16, device="openreg")
    assert storage.device == torch.device("openreg:0")
    assert torch.openreg.memory_allocated() == before + 512
    storage.resize_(4096)
    assert storage.nbytes() == 4096
    assert torch.openreg.memory_allocated() == before + 4096
    storage.resize_(0)
    assert torch.openreg.memory_allocated() == before


def test_a_slice_is_memory_of_the_whole():
    before = torch.openreg.memory_allocated()
    storage = torch.UntypedStorage(16, device="openreg")
    part = storage[4:12]
    assert (part.nbytes(), part.device) == (8, storage.device)
    assert part.data_ptr() == storage.data_ptr() + 4
    del storage
    assert torch.openreg.memory_allocated() == before + 512
    del part
    assert torch.openreg.memory_allocated() == before


def test_a_slice_is_not_resized():
    part = torch.UntypedStorage(16, device="openreg")[4:12]
    with pytest.raises(ValueError, match="of 8 bytes cannot be resized to 20 bytes: its memory is"):
        part.resize_(20)
    assert part.nbytes() == 8


def test_a_negative_size_is_refused_by_number():
    # Not out of memory: who catches that tries again with less.
    with pytest.raises(ValueError, match="with a sign this is -1, but a size is 0 or more."):
        torch.UntypedStorage(-1, device="openreg")
    storage = torch.UntypedStorage(16, device="openreg")
    with pytest.raises(ValueError, match="A storage has 0 bytes or more, not -1."):
        storage.resize_(-1)
    assert storage.nbytes() == 16


def test_a_storage_that_cannot_grow_stays_as_it_is():
    storage = torch.UntypedStorage(16, device="openreg")
    with pytest.raises(torch.OutOfMemoryError):
        storage.resize_(1 << 50)
    assert storage.nbytes() == 16
