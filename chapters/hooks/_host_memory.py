# SPDX-License-Identifier: BSD-3-Clause
"""Statistics of pinned memory: this chapter's share of `torch.openreg`."""

from . import _C

# [hooks.python.pinned] What is pinned, by the names that `torch.cuda` has.
__all__ = [
    "host_memory_stats",
    "reset_accumulated_host_memory_stats",
    "reset_peak_host_memory_stats",
]


def host_memory_stats():
    """Counts and bytes of pinned memory, by name.

    `active_requests` and `active_bytes` are what tensors hold or a stream still uses; `allocations`
    and `allocated_bytes` add what is cached.
    """
    return _C.host_memory_stats()


def reset_peak_host_memory_stats():
    """Forgets the peaks."""
    _C.reset_peak_host_memory_stats()


def reset_accumulated_host_memory_stats():
    """Forgets what was ever allocated and freed."""
    _C.reset_accumulated_host_memory_stats()


# [-]
