# SPDX-License-Identifier: BSD-3-Clause
"""The number that a fused multiply-add returns."""

import torch


def rounded_once(a, b, alpha):
    """`a + alpha * b` of float32 tensors, rounded once; `alpha` is a float32 number, too."""
    # A product of two float32 numbers is exact in float64.
    return (a.double() + alpha * b.double()).to(torch.float32)
