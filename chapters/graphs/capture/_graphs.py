# SPDX-License-Identifier: BSD-3-Clause
"""Graphs: this chapter's share of `torch.openreg`, first part."""

import contextlib

from . import _C
from ._stream import Stream, stream

# [graphs.python] The names are those of `torch.cuda`; the graph itself is PyTorch's `torch.accelerator.Graph`.
__all__ = ["graph", "graph_pool_handle", "is_current_stream_capturing"]


def graph_pool_handle():
    """A number for a pool of memory that several graphs share."""
    return _C.graph_pool_handle()


def is_current_stream_capturing():
    """Whether the work of the current stream is recorded instead of run."""
    return _C.is_current_stream_capturing()


# [graphs.python.graph] A graph cannot be captured on the default stream, so the context manager has one of its own for each device.
_streams = {}


class graph:
    """Captures into `openreg_graph`, a `torch.accelerator.Graph`, what its block does.

    Waits for the device and empties the caches first. `pool` is the `pool()` of another graph or
    a `graph_pool_handle()`; `stream` is captured instead of one of ours; the mode is `"global"`,
    `"thread_local"` or `"relaxed"`.
    """

    def __init__(self, openreg_graph, pool=None, stream=None, capture_error_mode="global"):
        self.openreg_graph = openreg_graph
        self.pool = pool
        self.capture_stream = stream
        self.capture_error_mode = capture_error_mode

    def __enter__(self):
        chosen = self.capture_stream
        if chosen is None:
            device = _C.current_device()
            if device not in _streams:
                _streams[device] = Stream(device=f"openreg:{device}")
            chosen = _streams[device]
        self.openreg_graph.graph_pool = self.pool
        self.openreg_graph.capture_error_mode = self.capture_error_mode
        with contextlib.ExitStack() as stack:
            stack.enter_context(stream(chosen))
            stack.enter_context(self.openreg_graph)
            self._leave = stack.pop_all()

    def __exit__(self, *exception):
        self._leave.__exit__(*exception)


# [-]
