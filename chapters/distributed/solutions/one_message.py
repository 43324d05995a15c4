# SPDX-License-Identifier: BSD-3-Clause
"""The mean of many tensors over all ranks, in one collective."""

import torch
import torch.distributed as dist


def mean_of_all(tensors, group=None):
    """Replaces each tensor by its mean over the ranks, with one all_reduce for all of them."""
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    dist.all_reduce(flat, dist.ReduceOp.AVG, group)
    parts = flat.split([tensor.numel() for tensor in tensors])
    for tensor, part in zip(tensors, parts, strict=True):
        tensor.copy_(part.view_as(tensor))
