# SPDX-License-Identifier: BSD-3-Clause
"""Several graphs that take turns in the same memory."""

import torch


def captured(functions):
    """A graph and the result for each function; all graphs share a pool."""
    found, pool = [], None
    for function in functions:
        function()  # What is done at a first call only must not be captured.
        graph = torch.accelerator.Graph()
        with torch.openreg.graph(graph, pool=pool):
            result = function()
        pool = pool or graph.pool()
        found.append((graph, result))
    return found
