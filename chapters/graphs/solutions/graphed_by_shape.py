# SPDX-License-Identifier: BSD-3-Clause
"""A function that is captured once for each shape of its argument."""

import torch


class GraphedByShape:
    """Calls `function(x)` as a graph; the result is overwritten by the next call.

    The graphs share a pool, which is safe because one call ends before the next begins.
    """

    def __init__(self, function):
        self.function = function
        self.pool = torch.openreg.graph_pool_handle()
        self.captures = {}

    def __call__(self, x):
        key = (x.shape, x.dtype, x.device)
        if key not in self.captures:
            self.captures[key] = self._capture(x)
        graph, fixed, result = self.captures[key]
        fixed.copy_(x)
        graph.replay()
        return result

    def _capture(self, x):
        fixed = x.clone()
        side = torch.Stream()
        side.wait_stream(torch.openreg.current_stream())
        with side:
            self.function(fixed)
        torch.openreg.synchronize()
        graph = torch.accelerator.Graph()
        with torch.openreg.graph(graph, pool=self.pool):
            result = self.function(fixed)
        return graph, fixed, result
