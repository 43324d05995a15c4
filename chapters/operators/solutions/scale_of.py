# SPDX-License-Identifier: BSD-3-Clause
"""The scale with which 8 bits hold a tensor best."""


def scale_of(x):
    """(scale, zero point) for `torch.quint8`, so that all of `x`, and zero, lie in its range."""
    low, high = (each.item() for each in x.aminmax())
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / 255 or 1.0
    return scale, min(255, max(0, round(-low / scale)))
