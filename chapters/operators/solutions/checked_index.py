# SPDX-License-Identifier: BSD-3-Clause
"""Change: an index that comes from the host is checked there, before it is launched."""

import torch

NAME = "aten::index.Tensor"
kernel = torch.library.get_kernel(NAME, "PrivateUse1")
# Registrations last as long as this object.
library = torch.library.Library("aten", "IMPL")


def check(index, dimension, size):
    low, high = (int(number) for number in index.aminmax())
    if low < -size or high >= size:
        wrong = high if high >= size else low
        raise IndexError(
            f"index {wrong} is out of bounds for dimension {dimension} with size {size}"
        )


def checked_index(keys, self, indices):
    dimension = 0
    for index in indices:
        whole = index is not None and index.dtype in (torch.int64, torch.int32)
        if whole and index.is_cpu and index.numel() and dimension < self.dim():
            check(index, dimension, self.size(dimension))
        # A mask stands for as many dimensions as it has.
        dimension += index.dim() if index is not None and not whole else 1
    return kernel.call_boxed(keys, self, indices)


library.impl("index.Tensor", checked_index, "PrivateUse1", with_keyset=True)
