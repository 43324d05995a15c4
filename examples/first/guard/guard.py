# SPDX-License-Identifier: BSD-3-Clause
"""The names that programs for other devices use, once there is a guard."""

import torch
from torch.accelerator import current_stream, set_stream, synchronize
from torch.accelerator import set_device_index as set_device

# [first.guard.python] PyTorch's device-neutral functions call the guard; torch.load passes a torch.device.
__all__ = ["current_stream", "device", "set_device", "set_stream", "synchronize"]


def device(device):
    """A context in which `device`, a torch.device or a number, is the current one."""
    return torch.accelerator.device_index(torch.device(device).index)


# [-]
