import faulthandler

import torch
from torch._dynamo.device_interface import DeviceInterface, register_interface_for_device
from torch._inductor.codegen.common import DeviceOpOverrides, register_backend_for_device
from torch._inductor.codegen.common import register_device_op_overrides
from torch._inductor.codegen.cpp import CppScheduling
from torch._inductor.codegen.wrapper import PythonWrapperCodegen


class Interface(DeviceInterface):
    @staticmethod
    def is_available():
        return True


class Program(PythonWrapperCodegen):
    @staticmethod
    def create(*arguments):
        return Program()

    def _generate_kernel_call_helper(self, kernel_name, call_args, **rest):
        self.writeline(self.wrap_kernel_call(kernel_name, call_args))


faulthandler.enable()
register_interface_for_device("openreg", Interface)
register_device_op_overrides("openreg", DeviceOpOverrides())
register_backend_for_device("openreg", CppScheduling, Program)
torch.compile(lambda x: x + 1)(torch.ones(4, device="openreg"))
