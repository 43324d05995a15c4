# SPDX-License-Identifier: BSD-3-Clause
"""Change: how large a request the cache could serve, for each stream."""


def room(snapshot):
    raise NotImplementedError("Return the size of the largest free block, by (device, stream).")
