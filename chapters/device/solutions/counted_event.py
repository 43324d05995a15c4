# SPDX-License-Identifier: BSD-3-Clause
"""Change: an event that is recorded again and again, and counts."""

import collections

import torch


class CountedEvent:
    """An event that tells how many of its recordings have happened."""

    def __init__(self, device="openreg"):
        self._device = device
        self._pending = collections.deque()
        self._happened = 0

    def record(self, stream=None):
        # An event forgets its mark when it is recorded again: each gets its own.
        event = torch.Event(self._device)
        event.record(stream)
        self._pending.append(event)

    def happened(self):
        while self._pending and self._pending[0].query():
            self._pending.popleft()
            self._happened += 1
        return self._happened
