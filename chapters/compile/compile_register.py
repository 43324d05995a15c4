# SPDX-License-Identifier: BSD-3-Clause
"""Registers the device with Dynamo and Inductor; imported when Inductor first compiles."""

import functools

import torch
from torch._dynamo.device_interface import register_interface_for_device
from torch._inductor import config
from torch._inductor.codegen.common import (
    register_backend_for_device,
    register_device_op_overrides,
)
from torch._inductor.custom_graph_pass import CustomGraphModulePass

from ._device import device_count
from .compile_interface import Interface, Overrides
from .compile_kernels import Scheduling, version
from .compile_library import CppProgram
from .compile_replays import Policy, ReplayedProgram


# [compile.register.pass] The pass says which operators Inductor must not turn into loops, and makes the caches depend on our files.
class Preparation(CustomGraphModulePass):
    """Runs over each graph before Inductor lowers it."""

    # Over all dimensions, Inductor numbers elements in the order of memory, except on the CPU.
    NO_LOOPS = (torch.ops.aten.argmax.default, torch.ops.aten.argmin.default)

    def __call__(self, gm):
        for target in self.NO_LOOPS:
            for node in gm.graph.find_nodes(op="call_function", target=target):
                node.meta["should_fallback"] = True

    def uuid(self):
        return version()


# [compile.register] One call registers each part, with the device or with each of its indices.
@functools.cache
def register():
    """Registers the device once."""
    for index in ("", *(f":{index}" for index in range(device_count()))):
        register_interface_for_device(f"openreg{index}", Interface)
    register_device_op_overrides("openreg", Overrides())
    register_backend_for_device(
        "openreg", Scheduling, ReplayedProgram, CppProgram, device_custom_pass=Preparation()
    )
    for setting in NOT_FOR_LOOPS_OF_CPP:
        setattr(config, setting, False)
    config.cudagraph_policy = config.cudagraph_policy or Policy()
    # Another order of operators makes fewer graphs of a program. We never divide one, and Inductor
    # does not know which operators must stay behind a change through a view.
    config.triton.reorder_for_reducing_graph_partitions = False
    # PyTorch has no header with the name of our device.
    config.aot_inductor.precompile_headers = False


# [compile.register.settings] Three kinds of fusion work for Triton's kernels only; Inductor exempts the CPU from them, but not us.
NOT_FOR_LOOPS_OF_CPP = (
    "loop_index_inversion_in_fusion",
    "loop_ordering_after_fusion",
    "loop_reindexing_after_fusion",
)

# [-]
