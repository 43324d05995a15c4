# SPDX-License-Identifier: BSD-3-Clause
"""Mixed precision: this chapter's share of `torch.openreg`."""

import torch

# [amp.python] `torch.autocast` asks these functions before it begins.
__all__ = ["get_amp_supported_dtype", "is_bf16_supported"]


def get_amp_supported_dtype():
    """The dtypes that autocast may compute in."""
    return [torch.float16, torch.bfloat16]


def is_bf16_supported(including_emulation=True):
    """Whether the device computes in bfloat16; it does, without emulation."""
    return True


# [-]
