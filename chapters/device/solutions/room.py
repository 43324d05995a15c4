# SPDX-License-Identifier: BSD-3-Clause
"""How large a request the cache could serve, for each stream."""


def room(snapshot):
    """The bytes of the largest free block, by (device, stream)."""
    found = {}
    for segment in snapshot:
        key = segment["device"], segment["stream"]
        free = [block["size"] for block in segment["blocks"] if block["state"] == "inactive"]
        found[key] = max([found.get(key, 0), *free])
    return found
