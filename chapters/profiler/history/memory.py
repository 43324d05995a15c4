# SPDX-License-Identifier: BSD-3-Clause
"""`torch.openreg.memory`: the memory functions, and the history of memory in PyTorch's format."""

import atexit
import pickle
import sys

from . import _C
from ._memory import *  # noqa: F403
from ._memory import __all__ as _memory_functions

# [profiler.history.module] The module has the names of `torch.cuda.memory`; those with an underscore are not in `__all__`.
__all__ = list(_memory_functions)


# [profiler.history.python] The words are PyTorch's, so a program for CUDA needs to change one name only.
def _one_of(name, value, words):
    if value not in words:
        allowed = ", ".join(repr(word) for word in words)
        raise ValueError(f"{name}={value!r} is unknown; it must be one of {allowed}.")


# [profiler.history.python.record] One call starts, changes or stops the recording.
def _record_memory_history(
    enabled="all",
    context="all",
    stacks="all",
    max_entries=sys.maxsize,
    device=None,
    clear_history=False,
):
    """Starts, changes or stops the recording of memory, on all devices.

    `enabled`: "all" keeps each change, "state" only who holds the memory there is, None stops.
    `context`: which changes get a stack: None, "state" or "alloc" (allocations), "all" (frees too).
    `stacks`: "python", or "all" with the frames of C++ as well, which takes longer.
    `max_entries`: how many changes are kept of each device. `device` is ignored, as in PyTorch.
    """
    _one_of("enabled", enabled, (None, "state", "all"))
    _one_of("context", context, (None, "state", "alloc", "all"))
    _one_of("stacks", stacks, ("python", "all"))
    if type(max_entries) is not int or max_entries < 0:
        raise ValueError(
            f"max_entries={max_entries!r} is no number of changes; it must be an int of 0 or more."
        )
    if clear_history:
        _C.clear_memory_history()
    if enabled is None:
        _C.stop_memory_history()
        return
    # A stack needs Python, and the backward threads free memory until the process ends.
    atexit.unregister(_C.stop_memory_history)
    atexit.register(_C.stop_memory_history)
    _C.start_memory_history(
        enabled == "all",
        context is not None,
        context == "all",
        stacks == "all",
        min(max_entries, sys.maxsize),
    )


# [profiler.history.snapshot] The snapshot joins what there is with how it came about.
def _snapshot(device=None):
    """The segments, their blocks and the recorded changes, as `torch.cuda.memory._snapshot` gives them."""
    traces, holders = _C.memory_history()
    segments = _C.memory_snapshot()
    for segment in segments:
        index = segment["device"]
        # The lowest bit marks a segment; its first block has the same address.
        segment |= holders.get((index, segment["address"] | 1), {"frames": []})
        for block in segment["blocks"]:
            if block["state"] != "inactive":
                block |= holders.get((index, block["address"]), {"frames": []})
    return {"segments": segments, "device_traces": traces, "external_annotations": []}


def _dump_snapshot(filename="dump_snapshot.pickle"):
    """Writes `_snapshot()` to a file, for `python -m torch.cuda._memory_viz` and PyTorch's viewer."""
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)


# [-]
