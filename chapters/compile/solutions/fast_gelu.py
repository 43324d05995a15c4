# SPDX-License-Identifier: BSD-3-Clause
"""A backend for `torch.compile` that computes GELU with a logistic function on openreg."""

import torch
from torch._inductor.compile_fx import compile_fx
from torch._inductor.decomposition import select_decomp_table


def gelu(x, *, approximate="none"):
    """x times a logistic function, within 0.021 of GELU; as before on other devices."""
    if x.device.type != "openreg" or approximate != "none":
        return NotImplemented
    return x * torch.sigmoid(1.702 * x)


def fast_gelu(graph, inputs):
    """For `torch.compile(backend=fast_gelu)`."""
    decompositions = {**select_decomp_table(), torch.ops.aten.gelu.default: gelu}
    return compile_fx(graph, inputs, decompositions=decompositions)
