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


class Made(torch.Tensor):
    """A tensor of the device without a kernel that makes one."""

    def __new__(cls):
        return torch.Tensor._make_wrapper_subclass(cls, (1,), device="openreg")

    @classmethod
    def __torch_dispatch__(cls, *call):
        raise NotImplementedError


def test_labels_go_into_a_file_by_name_and_come_back():
    tensor, loaded = Made(), Made()
    assert torch.openreg.labels(tensor) == set()
    torch.openreg.set_labels(tensor, {"tiled"})
    names = torch._C._get_tensor_metadata(tensor)
    assert names == {"tiled": True}
    torch._C._set_tensor_metadata(loaded, names | {"packed": False})
    assert torch.openreg.labels(loaded) == {"tiled"}


def test_labels_that_cannot_be_kept_are_refused():
    with pytest.raises(ValueError, match="on an openreg device has labels; this one is on cpu."):
        torch.openreg.set_labels(torch.empty(1), {"tiled"})
    with pytest.raises(ValueError, match="The label neg is PyTorch's own; choose another."):
        torch.openreg.set_labels(Made(), {"neg"})
