# SPDX-License-Identifier: BSD-3-Clause
"""A hook for DDP that sends gradients as bfloat16, which PyTorch's own allows for CUDA only."""

import torch
import torch.distributed as dist


def half_gradients(group, bucket):
    """For `model.register_comm_hook(group, half_gradients)`: the mean of all ranks' gradients."""
    gradients = bucket.buffer()
    # Divided first, so that the sum of many ranks stays in range.
    half = gradients.to(torch.bfloat16).div_(group.size())
    reduced = dist.all_reduce(half, group=group, async_op=True).get_future()
    return reduced.then(lambda future: gradients.copy_(future.value()[0]))
