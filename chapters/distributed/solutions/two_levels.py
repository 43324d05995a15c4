# SPDX-License-Identifier: BSD-3-Clause
"""An all_reduce that knows which ranks share a host, and sends each number between hosts once."""

import torch
import torch.distributed as dist


class TwoLevels:
    """Groups of all ranks, whose hosts have `ranks_per_host` ranks each."""

    def __init__(self, ranks_per_host):
        size, self.width = dist.get_world_size(), ranks_per_host
        hosts = torch.arange(size).view(-1, ranks_per_host)
        self.inside, _ = dist.new_subgroups_by_enumeration(hosts.tolist())
        # Rank k of each host: together they own the k-th slice.
        self.between, _ = dist.new_subgroups_by_enumeration(hosts.t().tolist())

    def all_reduce(self, tensor):
        """Replaces `tensor` by the sum over all ranks; its size must be a multiple of the width."""
        flat = tensor.view(-1)
        mine = flat.new_empty(flat.numel() // self.width)
        dist.reduce_scatter_single(mine, flat, group=self.inside)
        dist.all_reduce(mine, group=self.between)
        dist.all_gather_single(flat, mine, group=self.inside)
