# SPDX-License-Identifier: BSD-3-Clause
"""Devices: this chapter's share of `torch.openreg`, first part."""

from threading import get_ident

import torch

from . import _C

# [device.python] The names that this file adds to `torch.openreg`.
__all__ = [
    "can_device_access_peer",
    "current_device",
    "device",
    "device_count",
    "device_of",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "is_available",
    "reset_device",
    "set_device",
    "synchronize",
]


# [device.python.index] A device may be given as a number, a string, a `torch.device` or a context manager of ours.
def _index(which):
    """The index that `which` means; the current one for None.

    Raises:
        ValueError: `which` is of another type than openreg.
        torch.AcceleratorError: there is no such device.
    """
    if which is None:
        return _C.current_device()
    if isinstance(which, device):
        which = which.index
    elif not isinstance(which, int):
        which = torch.device(which)
        if which.type != "openreg":
            raise ValueError(f"{which} is not an openreg device.")
        which = -1 if which.index is None else which.index
    return _C.resolve_device(which)


# [device.python.ask] Asking about devices starts none of them.
def is_available():
    """Whether there is an openreg device."""
    return _C.device_count() > 0


def device_count():
    """How many openreg devices there are."""
    return _C.device_count()


def current_device():
    """The number of the device that is current on this thread."""
    return _C.current_device()


# [device.python.properties] The properties of a device, and what it can do.
def get_device_properties(device=None):
    """The device's `name`, `total_memory` in bytes and `multi_processor_count`.

    The last is how many streams the device runs at a time.
    """
    return _C.device_properties(_index(device))


def get_device_name(device=None):
    """What the device calls itself."""
    return get_device_properties(device).name


def get_device_capability(device=None):
    """A dictionary; `supported_dtypes` are those that the device can hold, fill and copy."""
    return torch.accelerator.get_device_capability(_index(device))


def can_device_access_peer(device, peer_device):
    """Whether `device` can copy from `peer_device`: every openreg device can, except from itself."""
    return _index(device) != _index(peer_device)


# [device.python.change] A device is chosen for good, or for a block.
def set_device(device):
    """Makes `device` (a number, a string or a `torch.device`) current on this thread."""
    _C.exchange_device(_index(device))


class device:
    """A context manager in which `device` is current; `None` changes nothing."""

    def __init__(self, device):
        self.index = -1 if device is None else _index(device)
        self._previous = {}  # by thread, because several may enter one object

    def __enter__(self):
        previous = self._previous.setdefault(get_ident(), [])
        left = -1 if self.index == -1 else _C.exchange_device(self.index)
        previous.append(left)

    def __exit__(self, *exception):
        # A generator may be closed by another thread, which has entered nothing.
        previous = self._previous.get(get_ident())
        _C.maybe_exchange_device(previous.pop() if previous else -1)


class device_of(device):
    """The same with the device of a tensor or storage; one of another type changes nothing."""

    def __init__(self, obj):
        super().__init__(obj.device if obj.device.type == "openreg" else None)


# [device.python.wait] Waiting for a device, and resetting it after a kernel has failed.
def synchronize(device=None):
    """Waits until everything enqueued on `device` has run.

    Raises:
        torch.AcceleratorError: a kernel failed; the message names it.
    """
    _C.synchronize(_index(device))


def reset_device(device=None):
    """Makes a device that a kernel has failed on usable again; its memory stays as it is."""
    _C.reset(_index(device))


# [-]
