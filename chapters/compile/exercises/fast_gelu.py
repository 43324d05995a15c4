# SPDX-License-Identifier: BSD-3-Clause
"""Change: a backend for `torch.compile` with a GELU of its own on openreg."""


def gelu(x, *, approximate="none"):
    raise NotImplementedError("Multiply x by sigmoid(1.702 * x); return NotImplemented elsewhere.")


def fast_gelu(graph, inputs):
    raise NotImplementedError("Call compile_fx with a table of decompositions that has yours.")
