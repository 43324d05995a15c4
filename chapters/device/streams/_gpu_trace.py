# SPDX-License-Identifier: BSD-3-Clause
"""`torch.openreg._gpu_trace`: who is called when PyTorch's trace is told of something.

The names are those of `torch.cuda._gpu_trace`; `torch._C._activate_gpu_trace()` begins the trace.
"""

import atexit
import sys

from torch._utils import CallbackRegistry

from . import _C

# [device.python.trace] PyTorch looks for each list of callbacks in this module, by its name.
__all__ = []


def _callbacks(what):
    registry = CallbackRegistry(f"openreg {what}")
    return registry, registry.add_callback


EventCreationCallbacks, register_callback_for_event_creation = _callbacks("event creation")
EventDeletionCallbacks, register_callback_for_event_deletion = _callbacks("event deletion")
EventRecordCallbacks, register_callback_for_event_record = _callbacks("event record")
EventWaitCallbacks, register_callback_for_event_wait = _callbacks("event wait")
EventSynchronizationCallbacks, register_callback_for_event_synchronization = _callbacks(
    "event synchronization"
)
StreamCreationCallbacks, register_callback_for_stream_creation = _callbacks("stream creation")
StreamSynchronizationCallbacks, register_callback_for_stream_synchronization = _callbacks(
    "stream synchronization"
)
DeviceSynchronizationCallbacks, register_callback_for_device_synchronization = _callbacks(
    "device synchronization"
)
MemoryAllocationCallbacks, register_callback_for_memory_allocation = _callbacks("memory allocation")
MemoryDeallocationCallbacks, register_callback_for_memory_deallocation = _callbacks(
    "memory deallocation"
)

atexit.register(_C.end_trace)
# PyTorch imports `torch.openreg._gpu_trace`, which must not become a second module.
sys.modules["torch.openreg._gpu_trace"] = sys.modules[__name__]

# [-]
