# SPDX-License-Identifier: BSD-3-Clause
"""Extend: the sum of two quantized tensors, with the scale and zero point of the first."""

import torch

# Registrations last as long as this object.
library = torch.library.Library("aten", "IMPL")


def add(one, other, *, alpha=1):
    raise NotImplementedError("Dequantize both, add them, and quantize the sum.")


library.impl("add.Tensor", add, "QuantizedPrivateUse1")
