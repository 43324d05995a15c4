# SPDX-License-Identifier: BSD-3-Clause
"""An all_reduce in which each rank talks to its two neighbors only, as between many hosts."""

import torch
import torch.distributed as dist


def ring_all_reduce(tensor, group=None):
    """Replaces `tensor` by the sum over the ranks of `group`.

    Each rank sends and receives 2 * (n - 1) slices of an n-th of the tensor.
    """
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    if size == 1:
        return
    slices = list(tensor.view(-1).tensor_split(size))
    arrived = torch.empty_like(slices[0])
    for step in range(2 * (size - 1)):
        going, coming = (rank - step) % size, (rank - step - 1) % size
        received = arrived[: slices[coming].numel()]
        pair = [
            dist.P2POp(dist.isend, slices[going], group_peer=(rank + 1) % size, group=group),
            dist.P2POp(dist.irecv, received, group_peer=(rank - 1) % size, group=group),
        ]
        for work in dist.batch_isend_irecv(pair):
            work.wait()
        if step < size - 1:
            slices[coming].add_(received)
        else:
            slices[coming].copy_(received)
