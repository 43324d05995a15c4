# SPDX-License-Identifier: BSD-3-Clause
"""Extend: what `torch.vmap` does with our fused operator: one launch for the whole batch."""

import torch


def rule(info, in_dims, x, mask, scale):
    """One more dimension in front of both, for those that have it; the rest is broadcasting."""
    x_dim, mask_dim, _ = in_dims
    x = x.expand(info.batch_size, *x.shape) if x_dim is None else x.movedim(x_dim, 0)
    if mask_dim is not None:
        # A mask of fewer dimensions is aligned at the end: its own batch goes to the very front.
        mask = mask.movedim(mask_dim, 0)
        missing = (1,) * (x.dim() - mask.dim())
        mask = mask.reshape(mask.shape[:1] + missing + mask.shape[1:])
    return torch.ops.openreg.scale_mask_softmax(x, mask, scale), 0


torch.library.register_vmap("openreg::scale_mask_softmax", rule)
