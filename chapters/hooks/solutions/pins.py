# SPDX-License-Identifier: BSD-3-Clause
"""How many requests for pinned memory the cache has served."""

import torch


def pins(function):
    """(requests for pinned memory while `function` runs, of these the ones that the cache served)"""
    before = torch.openreg.host_memory_stats()
    function()
    after = torch.openreg.host_memory_stats()
    requests, allocations = (
        after[name] - before[name]
        for name in ("active_requests.allocated", "allocations.allocated")
    )
    return requests, requests - allocations
