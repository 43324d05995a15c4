# SPDX-License-Identifier: BSD-3-Clause
"""Extend: the sum of two quantized tensors, with the scale and zero point of the first."""

import torch

library = torch.library.Library("aten", "IMPL")


def add(one, other, *, alpha=1):
    total = torch.add(one.dequantize(), other.dequantize(), alpha=alpha)
    return torch.quantize_per_tensor(total, one.q_scale(), one.q_zero_point(), one.dtype)


library.impl("add.Tensor", add, "QuantizedPrivateUse1")
