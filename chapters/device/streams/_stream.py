# SPDX-License-Identifier: BSD-3-Clause
"""Streams and events: this chapter's share of `torch.openreg`, second part."""

import contextlib

import torch

from . import _C
from ._device import _index, device

# [device.python.streams] PyTorch's own classes work on every accelerator.
__all__ = [
    "Event",
    "Stream",
    "current_stream",
    "default_stream",
    "get_stream_from_external",
    "set_stream",
    "stream",
]

Stream = torch.Stream
Event = torch.Event


# [device.python.streams.choose] A stream is current for its device on this thread.
class _On(device):
    """Makes the device current too: PyTorch leaves it if the stream is its current one."""

    def __init__(self, stream):
        super().__init__(stream.device)
        self._stream = stream

    def __enter__(self):
        self._stream.__enter__()
        super().__enter__()
        return self._stream

    def __exit__(self, *exception):
        super().__exit__(*exception)
        self._stream.__exit__(*exception)


def stream(stream):
    """A context manager in which `stream` and its device are current; `None` changes nothing."""
    if stream is None:
        return contextlib.nullcontext()
    return stream if torch.compiler.is_compiling() else _On(stream)


def set_stream(stream):
    """Makes `stream` current for its device, which becomes current too; `None` does nothing."""
    if stream is not None:
        torch.accelerator.set_stream(stream)


def current_stream(device=None):
    """The stream that new work on `device` goes to."""
    chosen = () if device is None else (_index(device),)  # Dynamo refuses a `None`.
    return torch.accelerator.current_stream(*chosen)


# [device.python.streams.number] The driver's handle is enough to find the stream.
def default_stream(device=None):
    """The stream that is current on `device` until another is chosen."""
    return _stream(0, _index(device))


def get_stream_from_external(data_ptr, device=None):
    """The stream that other code created with the driver, by its handle.

    That code must not destroy it before PyTorch has finished with it.

    Raises:
        ValueError: the driver knows no such stream, or it is of another device.
    """
    index = _index(device)
    return _stream(_C.stream_of_handle(data_ptr, index), index)


def _stream(number, index):
    return torch.Stream(stream_id=number, device_index=index, device_type=_C.device_type)


# [-]
