# SPDX-License-Identifier: BSD-3-Clause
"""Mixed precision."""

import torch

# [first.autocast.python] torch.autocast refuses a dtype that is not in this list.
__all__ = ["get_amp_supported_dtype"]


def get_amp_supported_dtype():
    """The dtypes that autocast can use on this device."""
    return [torch.bfloat16, torch.float16]


# [-]
