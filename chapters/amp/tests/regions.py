# SPDX-License-Identifier: BSD-3-Clause
"""A block of autocast on the device, and what counts the casts in it."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

LOW = torch.bfloat16
DEVICE = "openreg"


def region(dtype=LOW, **options):
    return torch.autocast(DEVICE, dtype=dtype, **options)


class Casts(TorchDispatchMode):
    """Counts the casts below autocast, and refuses products of two types."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.count += operator is torch.ops.aten._to_copy.default
        if operator is torch.ops.aten.mm.default and args[0].dtype != args[1].dtype:
            raise ValueError(f"mm of {args[0].dtype} and {args[1].dtype}")
        return operator(*args, **(kwargs or {}))
