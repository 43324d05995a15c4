# SPDX-License-Identifier: BSD-3-Clause
"""How far apart two results are, in numbers that lie between them."""

import torch


def place(x):
    """The place of each float32 number among all of them; both zeros have the place 0."""
    bits = x.contiguous().view(torch.int32).to(torch.int64)
    return torch.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


def steps(found, expected):
    """The largest number of float32 steps between two elements."""
    return int((place(found.cpu()) - place(expected.cpu())).abs().max())
