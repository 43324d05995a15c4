# SPDX-License-Identifier: BSD-3-Clause
"""Groups that span several hosts."""

import atexit
import sys

from . import _C

# [distributed.hosts.python] The engine between hosts is the one that PyTorch has for CPU tensors.
__all__ = []


def _engine(store, rank, size, timeout):
    """An engine that moves bytes between hosts; `GLOO_SOCKET_IFNAME` chooses its network."""
    return sys.modules["torch.distributed"].ProcessGroupGloo(store, rank, size, timeout)


_C.set_engine(_engine)
# A program may end while the engine of a group connects.
atexit.register(_C.end_searches)

# [-]
