# SPDX-License-Identifier: BSD-3-Clause
"""Whether a call was a replay."""

from torch._dynamo.utils import counters


def replayed(function, *arguments):
    """(what the call returns, whether it replayed a graph)"""
    before = counters["openreg"]["graph_replays"]
    result = function(*arguments)
    return result, counters["openreg"]["graph_replays"] > before
