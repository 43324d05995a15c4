# SPDX-License-Identifier: BSD-3-Clause
"""Statistics of pinned memory: this chapter's share of `torch.openreg`."""

from . import _C

# [hooks.python.pinned] Statistics of pinned memory have the names of `torch.cuda`.
__all__ = [
    "host_memory_stats",
    "reset_accumulated_host_memory_stats",
    "reset_peak_host_memory_stats",
]


def host_memory_stats():
    """Counts and bytes of pinned memory, by name.

    `active_requests` and `active_bytes` count the blocks that tensors hold or streams still use;
    `allocations` and `allocated_bytes` count the cached ones as well.
    """
    return _C.host_memory_stats()


def reset_peak_host_memory_stats():
    """Sets each peak to the current value."""
    _C.reset_peak_host_memory_stats()


def reset_accumulated_host_memory_stats():
    """Sets the totals of allocations and frees to zero."""
    _C.reset_accumulated_host_memory_stats()


# [-]
