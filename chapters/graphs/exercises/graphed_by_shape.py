# SPDX-License-Identifier: BSD-3-Clause
"""Extend: a function that is captured once for each shape of its argument."""


class GraphedByShape:
    def __init__(self, function):
        raise NotImplementedError("Create what the captures share.")

    def __call__(self, x):
        raise NotImplementedError("Capture if the shape is new; replay, and return the result.")

    def _capture(self, x):
        raise NotImplementedError("Warm up on another stream, then capture.")
