# SPDX-License-Identifier: BSD-3-Clause
"""The device as Dynamo and Inductor see it."""

from collections import namedtuple

import torch
from torch._dynamo.device_interface import DeviceInterface
from torch._inductor.codegen.common import DeviceOpOverrides

from . import _C, _device, _memory, _stream

# [compile.interface.properties] The properties are plain data, which can be kept, compared and pickled.
Properties = namedtuple("Properties", "type index name multi_processor_count total_memory")


# [compile.interface] Inductor asks one class about the device, and the class forwards to `torch.openreg`.
class Interface(DeviceInterface):
    device = _device.device
    Event = torch.Event
    Stream = torch.Stream
    current_device = staticmethod(_C.current_device)
    device_count = staticmethod(_device.device_count)
    exchange_device = staticmethod(_C.exchange_device)
    get_raw_stream = staticmethod(_C.raw_stream)
    is_available = staticmethod(_device.is_available)
    maybe_exchange_device = staticmethod(_C.maybe_exchange_device)
    memory_allocated = staticmethod(_memory.memory_allocated)
    set_device = staticmethod(_device.set_device)
    set_stream = staticmethod(_stream.set_stream)
    stream = staticmethod(_stream.stream)
    current_stream = staticmethod(_stream.current_stream)
    synchronize = staticmethod(_device.synchronize)

    # [compile.interface.worker] PyTorch asks a class inside of the interface what a worker process could not ask the device.
    class Worker:
        current_device = staticmethod(_C.current_device)
        set_device = staticmethod(_device.set_device)

        @staticmethod
        def get_device_properties(device=None):
            index = _device._index(device)
            found = _device.get_device_properties(index)
            return Properties(
                "openreg", index, found.name, found.multi_processor_count, found.total_memory
            )

    @staticmethod
    def _set_stream_by_id(stream_id, device_index, device_type):
        _stream.set_stream(
            torch.Stream(stream_id=stream_id, device_index=device_index, device_type=device_type)
        )

    @staticmethod
    def get_compute_capability(device=None):
        return 0

    @staticmethod
    def is_bf16_supported(including_emulation=False):
        return True


# [compile.interface.strings] Generated programs contain these strings.
class Overrides(DeviceOpOverrides):
    def import_get_raw_stream_as(self, name):
        return f"from torch_openreg._C import raw_stream as {name}"

    def set_device(self, device_idx):
        return f"torch.openreg.set_device({device_idx})"

    def synchronize(self):
        return "torch.openreg.synchronize()"

    def device_guard(self, device_idx):
        return f"torch.openreg.device({device_idx})"

    def current_stream(self):
        return "torch.openreg.current_stream()"

    def cpp_kernel_type(self):
        return "void*"


# [-]
