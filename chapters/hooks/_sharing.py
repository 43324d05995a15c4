# SPDX-License-Identifier: BSD-3-Clause
"""Memory that several processes use: this chapter's share of `torch.openreg`."""

import os
import select
import threading
from multiprocessing.reduction import ForkingPickler

import torch
from torch.multiprocessing.reductions import reduce_storage

from . import _C

# [hooks.python.sharing] A storage that was sent is kept until nobody else has it open.
__all__ = ["ipc_collect"]

_lent = {}  # What was sent, by the end of a pipe that tells when it is back.
_lock = threading.RLock()


def ipc_collect():
    """Forgets the storages that were received, and that no other process has open any more.

    This also happens whenever a storage is sent. A message that nobody has received yet keeps its
    storage.
    """
    back = []  # Dropped after the lock is released: what happens at its end may call this again.
    poll = select.poll()
    with _lock:
        for end in list(_lent):
            poll.register(end, 0)
        for end, _ in poll.poll(0):
            if end in _lent:
                back.append(_lent.pop(end))
                os.close(end)


# [hooks.python.sharing.send] A message holds no bytes of the storage, only where it is.
def _reduce(storage):
    """How `torch.multiprocessing` sends a storage; those of other devices as before."""
    if storage.device.type != "openreg":
        return reduce_storage(storage)
    if storage.nbytes() == 0:
        return _rebuild_empty, (str(storage.device),)
    from multiprocessing.resource_sharer import DupFd

    handle, offset = _C.share_storage(storage)
    ipc_collect()
    returned, lease = os.pipe()
    with _lock:
        _lent[returned] = storage
    try:
        return _rebuild, (handle, offset, storage.nbytes(), DupFd(lease))
    finally:
        os.close(lease)


# [hooks.python.sharing.receive] The other end of the pipe stays open as long as the storage lives.
def _rebuild(handle, offset, nbytes, lease):
    try:
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
