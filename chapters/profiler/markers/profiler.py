# SPDX-License-Identifier: BSD-3-Clause
"""`torch.openreg.profiler`: ranges that a program marks, in the manner of `torch.cuda.nvtx`."""

import contextlib

from torch._C._profiler import _ExperimentalConfig
from torch.autograd import (
    ProfilerConfig,
    ProfilerState,
    _disable_profiler,
    _enable_profiler,
)

from . import _C

# [profiler.markers] Ranges go to the driver, so that any tool that observes it sees them, PyTorch's profiler among them.
__all__ = ["emit_ranges", "mark", "range", "range_pop", "range_push"]


def range_push(message):
    """Begins a range on this thread."""
    _C.range_push(str(message))


def range_pop():
    """Ends the range that this thread began last."""
    _C.range_pop()


def mark(message):
    """Marks one moment: an empty range."""
    range_push(message)
    range_pop()


@contextlib.contextmanager
def range(message):
    """A range around a `with` block; also a decorator."""
    range_push(message)
    try:
        yield
    finally:
        range_pop()


# [profiler.markers.emit] What `torch.autograd.profiler.emit_nvtx` is for CUDA.
@contextlib.contextmanager
def emit_ranges():
    """Makes a range of each operator in the block, for tools that observe the driver.

    PyTorch has one profiler on a thread at a time, so it cannot run inside of `torch.profiler`.
    """
    recorded = [False] * 5  # shapes, memory, stacks, FLOPs, modules: PyTorch records nothing itself
    config = ProfilerConfig(ProfilerState.PRIVATEUSE1, *recorded, _ExperimentalConfig())
    _enable_profiler(config, set())
    try:
        yield
    finally:
        _disable_profiler()


# [-]
