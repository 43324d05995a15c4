# SPDX-License-Identifier: BSD-3-Clause
"""The step of a program that fails on the device."""

import torch


def failing_step(steps, x):
    """The number of the first of `steps` that fails, or None; each gets the result of the one before."""
    for number, step in enumerate(steps):
        try:
            x = step(x)
            torch.openreg.synchronize()
        except Exception:
            return number
    return None
