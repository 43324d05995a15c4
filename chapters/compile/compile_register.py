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
from torch._inductor.lowering import make_pointwise, promote_constants, register_lowering
from torch._inductor.virtualized import ops
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND

from ._device import current_device, device_count
from .compile_interface import Interface, Overrides
from .compile_kernels import Scheduling, version
from .compile_library import CppProgram
from .compile_replays import Policy, ReplayedProgram


# [compile.register.pass] The pass prepares a graph for loops on our device, and makes the caches depend on our files.
class Preparation(CustomGraphModulePass):
    """Runs over each graph before Inductor lowers it."""

    def __call__(self, gm):
        for node in gm.graph.nodes:
            if device(node) == "openreg":
                if has_other_loops(node):
                    node.meta["should_fallback"] = True
                divide_by_number(node)
                move_first_number(gm.graph, node)
            elif str(node.target).startswith("aten._foreach_"):
                move_first_numbers(gm.graph, node)

    def uuid(self):
        # The key of a cache has the device of a tensor, but not of the tensor inside a DTensor.
        return f"{version()} openreg:{current_device()}"


# [compile.register.other] Where Inductor's loops compute something else than the operator, the operator is called.
def has_other_loops(node):
    """Whether the loops that Inductor would write for a node give another result than its kernel."""
    aten, target, dtype = torch.ops.aten, node.target, node.meta["val"].dtype
    if target in (aten.argmax.default, aten.argmin.default):
        # Over all dimensions, Inductor numbers elements in the order of memory, except on the CPU.
        return True
    operator = getattr(target, "overloadpacket", None)
    if operator is aten.div:
        # 7.5 // 0.1 is 74, although 7.5 / 0.1 is rounded to 75.
        return dtype.is_floating_point and node.kwargs.get("rounding_mode") == "floor"
    if operator in (aten.remainder, aten.floor_divide):
        return dtype.is_floating_point
    return operator is aten.any and dtype == torch.uint8  # In a loop it is of bool.


# [compile.register.divide] Inductor multiplies by the reciprocal of a number, except on the CPU; here a division stays one.
INT_TO_FLOAT = ELEMENTWISE_TYPE_PROMOTION_KIND.INT_TO_FLOAT
library = torch.library.Library("openreg", "FRAGMENT")
library.define("divide(Tensor a, Scalar b) -> Tensor", tags=(torch.Tag.flexible_layout,))
library.impl("divide", torch.true_divide, "CompositeExplicitAutograd")


def divide_by_number(node):
    """Makes a division of real numbers by one number an operator of ours."""
    real = node.meta["val"].dtype.is_floating_point
    if node.target == torch.ops.aten.div.Tensor and real and not device(node.args[1]):
        node.target = torch.ops.openreg.divide.default


def divide(a, b):
    """The loop of this operator."""
    promoted = promote_constants((a, b), type_promotion_kind=INT_TO_FLOAT)
    return make_pointwise(ops.truediv)(*promoted)


# [compile.register.first] The loops of an operator run where its first tensor is, unless Inductor counts the device of another one as a GPU.
def device(node):
    """The type of the device of a node's result; None if that is not one tensor."""
    value = isinstance(node, torch.fx.Node) and node.meta.get("val")
    return value.device.type if isinstance(value, torch.Tensor) else None


def move_first_number(graph, node):
    """Gives an operator its first tensor on the device of its result if it is a number of the host."""
    tensors = [each for each in node.all_input_nodes if device(each)]
    if getattr(node.target, "namespace", "") not in ("aten", "prims"):
        return  # A custom operator gets what the program passes.
    if len(tensors) < 2 or not is_number_of_host(tensors[0]):
        return
    moved = on_device(graph, node, tensors[0], node.meta["val"].device)
    node.replace_input_with(tensors[0], moved)


def is_number_of_host(node):
    return device(node) == "cpu" and not node.meta["val"].dim()


def on_device(graph, node, number, place):
    """A number on the device, made before `node`."""
    with graph.inserting_before(node):
        made = graph.call_function(torch.ops.openreg.number.default, (number, place))
    made.meta["val"] = number.meta["val"].to(place)
    return made


# [compile.register.first.number] The number is read at the launch, as any number of the host, so the program may change it after the call.
library.define("number(Tensor number, Device device) -> Tensor")
library.impl("number", torch.Tensor.to, "CPU")
torch.library.register_fake(
    "openreg::number", lambda number, device: number.new_empty((), device=device), lib=library
)


def number(value, place):
    """The loop of this operator."""
    return make_pointwise(lambda x: x, override_device=place)(value)


# [compile.register.first.lists] An operator on lists has a first tensor for each of its results, such as the states of an optimizer.
def move_first_numbers(graph, node):
    """The same for each row of an operator on lists."""
    first, *others = node.args
    results = node.meta["val"]
    # It may have no results, since it changes its arguments, and no first list, as `2 ** x`.
    if not results or not isinstance(first, (list, tuple)):
        return
    moved = [
        on_device(graph, node, number, result.device)
        if result.device.type == "openreg" and is_number_of_host(number)
        else number
        for number, result in zip(first, results)
    ]
    node.args = (moved, *others)


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
    register_lowering(torch.ops.openreg.divide, broadcast=True, type_promotion_kind=INT_TO_FLOAT)(
        divide
    )
    register_lowering(torch.ops.openreg.number, type_promotion_kind=None)(number)
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
