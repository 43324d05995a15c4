# SPDX-License-Identifier: BSD-3-Clause
"""Every tensor has a block of its own, and returns it."""

import ctypes

import pytest
import torch
import torch_tiny


def free_bytes():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    torch_tiny._driver.orMemGetInfo(ctypes.byref(free), ctypes.byref(total))
    return free.value


def test_dropped_tensors_return_their_memory():
    before = free_bytes()
    size = before // 4
    for _ in range(40):
        torch.empty(size, dtype=torch.uint8, device="tiny")
    assert free_bytes() == before


def test_a_full_device_is_an_out_of_memory_error():
    with pytest.raises(torch.OutOfMemoryError, match="4000000000000"):
        torch.empty(10**12, device="tiny")


def test_the_device_of_a_tensor_is_that_of_its_memory():
    x = torch.empty(2, device="tiny:1")
    assert x.device == torch.device("tiny:1") and torch.tiny.current_device() == 0


@pytest.mark.parametrize("size", [(), (0,), (2, 0, 3), (2, 3)])
def test_shapes_and_strides_are_those_of_the_cpu(size):
    x, y = torch.empty(size, device="tiny"), torch.empty(size)
    assert x.shape == y.shape and x.stride() == y.stride()
