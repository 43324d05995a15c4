# SPDX-License-Identifier: BSD-3-Clause
"""Change: one seed, and yet other numbers on each device."""

import torch


def manual_seed_apart(seed):
    """Seeds device 0 with `seed`, device 1 with `seed + 1`, and so on."""
    for index in range(torch.openreg.device_count()):
        with torch.openreg.device(index):
            torch.openreg.manual_seed(seed + index)
