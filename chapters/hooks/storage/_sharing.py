# SPDX-License-Identifier: BSD-3-Clause
"""Memory that several processes use: this chapter's share of `torch.openreg`."""

import errno
import os
from contextlib import contextmanager
from multiprocessing.reduction import ForkingPickler

import torch
from torch.multiprocessing.reductions import reduce_storage

from . import _C

# [hooks.python.sharing] Returned storages are collected at each send, or on request under the name of `torch.cuda`.
__all__ = ["ipc_collect"]


def ipc_collect():
    """Drops the storages that were sent and that no other process has open any more.

    This also happens whenever a storage is sent, and when a device is full. A message that has not
    been received yet keeps its storage.
    """
    _C.ipc_collect()


# [hooks.python.sharing.limit] Python's own error has only a number, so ours adds the cause and what helps.
@contextmanager
def _descriptors():
    """Says what to do if a block needs more file descriptors than this process may have."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        import resource  # rarely needed, and not imported by PyTorch

        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        raise RuntimeError(
            f"This process may have {most} open files, and sharing storages on openreg needs more:"
            " two for each storage in a message, one for each that is received. Send one large"
            " tensor instead of many small ones, or raise the limit with `ulimit -n`."
        ) from error


# [hooks.python.sharing.send] A message holds the location of a storage and none of its bytes.
def _reduce(storage):
    """How `torch.multiprocessing` sends a storage; other devices keep PyTorch's way."""
    if storage.device.type != "openreg":
        return reduce_storage(storage)
    if storage.nbytes() == 0:
        return _rebuild_empty, (str(storage.device),)
    from multiprocessing.resource_sharer import DupFd

    handle, offset = _C.share_storage(storage)
    ipc_collect()
    with _descriptors():
        returned, lease = os.pipe()
        _C.lend(storage, returned)
        try:
            return _rebuild, (handle, offset, storage.nbytes(), DupFd(lease))
        finally:
            os.close(lease)


# [hooks.python.sharing.receive] The receiver keeps the pipe open for as long as the storage lives.
def _rebuild(handle, offset, nbytes, lease):
    try:
        with _descriptors():
            received = lease.detach()
    except (EOFError, OSError) as error:
        raise RuntimeError(
            "A storage on openreg can be received once, and while the process that sent it lives; "
            "this message was received before, or its sender has ended."
        ) from error
    return _C.open_storage(handle, offset, nbytes, received)


def _rebuild_empty(device):
    return torch.UntypedStorage(0, device=device)


ForkingPickler.register(torch.UntypedStorage, _reduce)

# [-]
