# SPDX-License-Identifier: BSD-3-Clause
"""Devices, streams, events and memory: this chapter's share of `torch.openreg`."""

import torch

from . import _C

# [device.python] What this chapter adds to `torch.openreg`.
__all__ = [
    "Event",
    "Stream",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "empty_cache",
    "is_available",
    "max_memory_allocated",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_device",
    "reset_peak_memory_stats",
    "set_device",
    "stream",
    "synchronize",
]


# [device.python.index] A device may be given as a number, a string or a `torch.device`.
def _index(device):
    """The index that `device` means; the current one for None.

    Raises:
        ValueError: `device` is of another type than openreg.
        IndexError: there is no such device.
    """
    if device is None:
        return _C.current_device()
    if not isinstance(device, int):
        device = torch.device(device)
        if device.type != "openreg":
            raise ValueError(f"{device} is not an openreg device.")
        device = -1 if device.index is None else device.index
    return _C.resolve_device(device)


# [device.python.ask] Asking starts nothing.
def is_available():
    """Whether there is an openreg device."""
    return _C.device_count() > 0


def device_count():
    """How many openreg devices there are."""
    return _C.device_count()


def current_device():
    """The number of the device that is current on this thread."""
    return _C.current_device()


# [device.python.change] Choosing a device, for good or for a block.
def set_device(device):
    """Makes `device` (a number, a string or a `torch.device`) current on this thread."""
    _C.exchange_device(_index(device))


class device:
    """A context manager in which `device` is current; `None` changes nothing."""

    def __init__(self, device):
        self.index = -1 if device is None else _index(device)
        self._previous = []

    def __enter__(self):
        self._previous.append(_C.maybe_exchange_device(self.index))

    def __exit__(self, *exception):
        _C.exchange_device(self._previous.pop())


# [device.python.wait] Waiting, and beginning anew after a kernel has failed.
def synchronize(device=None):
    """Waits until everything enqueued on `device` has run.

    Raises:
        torch.AcceleratorError: a kernel failed; the message names it.
    """
    _C.synchronize(_index(device))


def reset_device(device=None):
    """Makes a device that a kernel has failed on usable again; its memory stays as it is."""
    _C.reset(_index(device))


# [device.python.streams] PyTorch's own classes work on every accelerator.
Stream = torch.Stream
Event = torch.Event


def stream(stream):
    """A context manager in which `stream` is current: a `torch.Stream` is one itself."""
    return stream


def current_stream(device=None):
    """The stream that new work on `device` goes to."""
    return torch.accelerator.current_stream(_index(device))


def default_stream(device=None):
    """The stream that is current on `device` until another is chosen."""
    return torch.Stream(stream_id=0, device_index=_index(device), device_type=_C.device_type)


# [device.python.memory] Memory, by the names that `torch.cuda` has.
def memory_allocated(device=None):
    """Bytes of `device` that tensors hold."""
    return torch.accelerator.memory_allocated(_index(device))


def max_memory_allocated(device=None):
    """The most bytes of `device` that tensors have held at a time."""
    return torch.accelerator.max_memory_allocated(_index(device))


def memory_reserved(device=None):
    """Bytes of `device` that the allocator holds, for tensors or for later."""
    return torch.accelerator.memory_reserved(_index(device))


def memory_stats(device=None):
    """All statistics of the allocator, by name."""
    return torch.accelerator.memory_stats(_index(device))


def reset_peak_memory_stats(device=None):
    """Forgets the peaks."""
    torch.accelerator.reset_peak_memory_stats(_index(device))


# [device.python.memory.device] What the device itself has left.
def mem_get_info(device=None):
    """Free and total bytes of `device`, as the driver counts them."""
    return torch.accelerator.get_memory_info(_index(device))


def empty_cache():
    """Gives back to the devices all memory that no tensor holds."""
    torch.accelerator.empty_cache()


# [-]
