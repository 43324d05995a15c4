# SPDX-License-Identifier: BSD-3-Clause
"""The names that programs for other devices use, once there is a guard."""

from torch.accelerator import current_stream, set_stream, synchronize
from torch.accelerator import device_index as device
from torch.accelerator import set_device_index as set_device

# [first.guard.python] PyTorch's device-neutral functions call the guard, so ours need no code.
__all__ = ["current_stream", "device", "set_device", "set_stream", "synchronize"]

# [-]
