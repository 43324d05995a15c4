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

from ._device import current_device, device_count
from .compile_interface import Interface, Overrides
from .compile_kernels import Scheduling, version
from .compile_library import CppProgram
from .compile_replays import Policy, ReplayedProgram


# [compile.register.pass] The pass prepares a graph for loops on our device, and makes the caches depend on our files.
class Preparation(CustomGraphModulePass):
    """Runs over each graph before Inductor lowers it."""

    # Over all dimensions, Inductor numbers elements in the order of memory, except on the CPU.
    NO_LOOPS = (torch.ops.aten.argmax.default, torch.ops.aten.argmin.default)

    def __call__(self, gm):
        for target in self.NO_LOOPS:
            for node in gm.graph.find_nodes(op="call_function", target=target):
                node.meta["should_fallback"] = True
        for node in gm.graph.nodes:
            if device(node) == "openreg":
                move_first_number(gm.graph, node)

    def uuid(self):
        # The key of a cache has the device of a tensor, but not of the tensor inside a DTensor.
        return f"{version()} openreg:{current_device()}"


# [compile.register.first] The loops of an operator run where its first tensor is, unless Inductor counts the device of another one as a GPU.
def device(node):
    """The type of the device of a node's result; None if that is not one tensor."""
    value = isinstance(node, torch.fx.Node) and node.meta.get("val")
    return value.device.type if isinstance(value, torch.Tensor) else None


def move_first_number(graph, node):
    """Copies the first tensor of an operator to the device of its result if it is a number of the host."""
    tensors = [each for each in node.all_input_nodes if device(each)]
    if getattr(node.target, "namespace", "") not in ("aten", "prims"):
        return  # A custom operator gets what the program passes.
    if len(tensors) < 2 or device(tensors[0]) != "cpu" or tensors[0].meta["val"].dim():
        return
    place, number = node.meta["val"].device, tensors[0]
    with graph.inserting_before(node):
        moved = graph.call_function(torch.ops.prims.device_put.default, (number, place, True))
    moved.meta["val"] = number.meta["val"].to(place)
    node.replace_input_with(number, moved)


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
    for setting, value in SETTINGS.items():
        # An assignment to the setting itself would hold on the calling thread only.
        config._config[setting].default = value


# [compile.register.settings] These hold on every thread of the process that does not choose for itself.
SETTINGS = {
    "cudagraph_policy": Policy(),
    # These kinds of fusion work for Triton's kernels only; Inductor exempts the CPU from them, but not us.
    "loop_index_inversion_in_fusion": False,
    "loop_ordering_after_fusion": False,
    "loop_reindexing_after_fusion": False,
    # Another order of operators makes fewer graphs of a program. We never divide one, and Inductor
    # does not know which operators must stay behind a change through a view.
    "triton.reorder_for_reducing_graph_partitions": False,
    # PyTorch has no header with the name of our device.
    "aot_inductor.precompile_headers": False,
}

# [-]
