# SPDX-License-Identifier: BSD-3-Clause
"""Where the supported releases of PyTorch differ, said once: for the tests, and for the page that lists it.

A difference is true if the PyTorch that runs has the change. It asks for the feature itself; the
release is for the reader, and for the test that says when a difference is no longer needed.
"""

from __future__ import annotations

from typing import NamedTuple

import torch


class Difference(NamedTuple):
    since: str  # the first release that has the change
    change: str  # PyTorch's pull request
    what: str
    here: bool

    def __bool__(self):
        return self.here

    def __str__(self):
        return f"PyTorch has it since {self.since}, {self.change}"


def _refuses_a_mask_with_causal():
    one = torch.ones(1, 1, 1, 1)
    try:
        torch.nn.functional.scaled_dot_product_attention(one, one, one, one, is_causal=True)
    except RuntimeError:
        return True
    return False


def _checks_every_accelerator():
    check = torch.optim.Optimizer._accelerator_graph_capture_health_check
    return frozenset({"cuda", "xpu"}) not in check.__code__.co_consts


def _announces_a_cell_without_bias():
    one = torch.empty(1, 4, device="meta")
    try:
        torch.ops.aten._thnn_fused_lstm_cell(one, one, one[:, :1])
    except AttributeError:
        return False
    return True


BCOMPLEX32 = Difference(
    "2.14",
    "pytorch/pytorch#173783",
    "There is a dtype of two bfloat16, which the CPU copies and does not fill.",
    hasattr(torch, "bcomplex32"),
)
ACCELERATOR_RANDOM = Difference(
    "2.14",
    "pytorch/pytorch#186597",
    "`torch.accelerator.random` asks the hooks for the default generator of a device.",
    hasattr(torch.accelerator, "random"),
)
PHILOX_STATE = Difference(
    "2.14",
    "pytorch/pytorch#191019",
    "Kernels from outside reserve random numbers with `Generator.philox_state`.",
    hasattr(torch.Generator, "philox_state"),
)
BACKEND_ENTRY_POINTS = Difference(
    "2.14",
    "pytorch/pytorch#187388",
    "`torch.distributed` looks for an unknown backend among the entry points of installed packages.",
    hasattr(torch.distributed.Backend, "_ensure_backend_registered"),
)
MATRIX_SQRTH = Difference(
    "2.14",
    "pytorch/pytorch#187987",
    "Autocast has a rule for `linalg_matrix_sqrth` on CUDA that is in none of the lists for other devices.",
    hasattr(torch.linalg, "matrix_sqrth"),
)
MASK_OR_CAUSAL = Difference(
    "2.14",
    "pytorch/pytorch#187801",
    "Attention with a mask and `is_causal=True` is an error, where both were applied.",
    _refuses_a_mask_with_causal(),
)
CAPTURABLE_CHECKED = Difference(
    "2.15",
    "pytorch/pytorch#194362",
    "An optimizer without `capturable=True` refuses to be captured on every accelerator.",
    _checks_every_accelerator(),
)
FUSED_CELL_WITHOUT_BIAS = Difference(
    "2.15",
    "pytorch/pytorch#191156",
    "The Meta function of a fused recurrent cell takes a cell without bias.",
    _announces_a_cell_without_bias(),
)


def all_differences():
    """{name: difference}, in the order of this file."""
    return {name: value for name, value in globals().items() if isinstance(value, Difference)}
