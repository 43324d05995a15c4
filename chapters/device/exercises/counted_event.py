# SPDX-License-Identifier: BSD-3-Clause
"""Change: an event that is recorded again and again, and counts its complete recordings."""


class CountedEvent:
    def __init__(self, device="openreg"):
        raise NotImplementedError("Create what you need.")

    def record(self, stream=None):
        raise NotImplementedError("Record one more point in `stream`, or in the current stream.")

    def happened(self):
        raise NotImplementedError("Return how many recordings are complete, without waiting.")
