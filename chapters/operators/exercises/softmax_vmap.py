# SPDX-License-Identifier: BSD-3-Clause
"""Extend: a rule for `torch.vmap` of our fused operator: one launch for the whole batch."""

import torch


def rule(info, in_dims, x, mask, scale):
    raise NotImplementedError("Move the batch to the front, call the operator, and return 0 too.")


torch.library.register_vmap("openreg::scale_mask_softmax", rule)
