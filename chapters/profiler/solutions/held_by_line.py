# SPDX-License-Identifier: BSD-3-Clause
"""Which lines of a program hold its memory."""

import collections


def held(snapshot, file):
    """The bytes in use, by the innermost line of the file from which they were allocated."""
    lines = collections.Counter()
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            ours = [f["line"] for f in block.get("frames", []) if f["filename"] == file]
            if block["state"] == "active_allocated" and ours:
                lines[ours[0]] += block["requested_size"]
    return dict(lines)
