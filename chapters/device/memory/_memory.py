# SPDX-License-Identifier: BSD-3-Clause
"""Memory: this chapter's share of `torch.openreg`, third part."""

import torch

from . import _C
from ._device import _index

# [device.python.memory] Memory functions have the names of `torch.cuda`.
__all__ = [
    "empty_cache",
    "guard_allocator_enabled",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
]


# [device.python.memory.count] How much memory tensors hold, and how much the allocator holds.
def memory_allocated(device=None):
    """Bytes of `device` that tensors hold."""
    return torch.accelerator.memory_allocated(_index(device))


def max_memory_allocated(device=None):
    """The most bytes of `device` that tensors have held at a time."""
    return torch.accelerator.max_memory_allocated(_index(device))


def memory_reserved(device=None):
    """Bytes of `device` that the allocator holds, for tensors or for later."""
    return torch.accelerator.memory_reserved(_index(device))


def max_memory_reserved(device=None):
    """The most bytes of `device` that the allocator has held at a time."""
    return torch.accelerator.max_memory_reserved(_index(device))


# [device.python.memory.stats] All statistics, and how to reset them.
def memory_stats(device=None):
    """All statistics of the allocator, by name."""
    return torch.accelerator.memory_stats(_index(device))


def memory_summary(device=None, abbreviated=False):
    """The statistics of `device` as a table, in bytes and counts.

    With `abbreviated`, without those of each pool.
    """
    columns, stats = ("current", "peak", "allocated", "freed"), memory_stats(device)
    lines = [f"{f'openreg:{_index(device)}':<32}" + "".join(f"{each:>16}" for each in columns)]
    for name, number in stats.items():
        counted, _, column = name.rpartition(".")
        if column == "current" and not (abbreviated and counted.endswith("_pool")):
            row = "".join(f"{stats[f'{counted}.{each}']:16,}" for each in columns)
            lines.append(f"{counted:32}{row}")
        elif column not in columns:
            lines.append(f"{name:32}{number:16,}")
    return "\n".join(lines) + "\n"


def reset_peak_memory_stats(device=None):
    """Forgets the peaks: they are what there is now."""
    torch.accelerator.reset_peak_memory_stats(_index(device))


def reset_accumulated_memory_stats(device=None):
    """Forgets the sums of all that was ever allocated and freed."""
    torch.accelerator.reset_accumulated_memory_stats(_index(device))


# [device.python.memory.device] How much memory the device has left, and what holds the rest.
def mem_get_info(device=None):
    """Free and total bytes of `device`, as the driver counts them."""
    return torch.accelerator.get_memory_info(_index(device))


def empty_cache():
    """Gives back to the devices all memory that no tensor holds; waits for them to be idle."""
    _C.empty_cache()


def guard_allocator_enabled():
    """Whether each tensor has a block with guards around it, with `OPENREG_SANITIZE=memory`."""
    return _C.memory_is_guarded()


def memory_snapshot():
    """Every segment that the allocator holds, on all devices, and the blocks in it.

    A list of dictionaries with the keys that `torch.cuda.memory_snapshot` has. A block's
    `state` is `active_allocated`, `active_pending_free` (freed, but another stream still
    uses it) or `inactive`.
    """
    return _C.memory_snapshot()


# [-]
