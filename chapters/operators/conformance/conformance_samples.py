# SPDX-License-Identifier: BSD-3-Clause
"""Inputs of PyTorch's operator database, moved to a device, run there and compared."""

import copy

import torch
from torch._prims_common import compute_required_storage_length
from torch.utils._pytree import tree_leaves, tree_map

# [operators.conformance.database] PyTorch lists its operators with inputs for each.
INITIALIZED = ("empty", "new_empty")  # these return whatever the memory holds
ON_HOST = "the arguments stay on the host"


def database():
    """The entries by their full names."""
    from torch.testing._internal import common_methods_invocations as methods

    # Random operators are wrapped so that they draw the same numbers each time. No two
    # devices draw the same, so the test must see them for what they are.
    methods.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
    # An operator that is the CPU's by its name is asked of no other device.
    return {op.full_name: op for op in methods.op_db if not op.name.endswith("_for_cpu")}


# [operators.conformance.move] A sample nests tensors and device names, and both are replaced.
def mapped(change, value):
    """`value` with every tensor and every device name in it changed."""

    def is_place(leaf):
        return isinstance(leaf, (torch.Tensor, torch.device)) or leaf == "cpu"

    return tree_map(lambda leaf: change(leaf) if is_place(leaf) else leaf, value)


def transformed(change, sample):
    """A sample with arguments that are `mapped`; its own `transform` passes no device names."""
    moved = copy.copy(sample)
    with torch.no_grad():
        moved.input, moved.args, moved.kwargs = mapped(
            change, (sample.input, sample.args, sample.kwargs)
        )
    return moved


def with_tensors(change, sample):
    """The sample with every tensor changed."""
    return transformed(lambda x: change(x) if isinstance(x, torch.Tensor) else x, sample)


def tensors_in(value):
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


# [operators.conformance.copy] Each run gets its own copy of the sample.
def on(device, sample, view=lambda x: x):
    """A copy of the sample on a device: some operators write into their inputs.

    `view` makes another tensor of the same values of each copy.
    """

    def move(value):
        if not isinstance(value, torch.Tensor):
            return device
        if sample.name == ON_HOST and value is not sample.input:
            return value.clone()
        moved = view(value.detach().clone().to(device))
        return moved.requires_grad_(value.requires_grad)

    return transformed(move, sample)


# [operators.conformance.loss] The loss decides which wrong gradients show.
def plain_sum(output):
    """Its gradient is expanded: one number, with strides of 0."""
    return output.abs().sum()


def weighted_sum(output):
    """A sum in which neighbors count differently."""
    if output.layout != torch.strided or output.is_nested:
        return plain_sum(output)
    weights = 1 + torch.arange(output.numel()) % 7 / 8
    return (output.abs() * weights.view(output.shape).to(output.device, output.abs().dtype)).sum()


# [operators.conformance.run] When a run returns, the device has finished and has reported its errors.
def leaves_of(sample):
    """The inputs whose gradients are asked for."""
    inputs = tensors_in([sample.input, sample.args, sample.kwargs])
    return [x for x in inputs if x.requires_grad]


def run(op, sample, backward, loss=weighted_sum):
    """The outputs, and the gradients of the inputs if `backward`."""
    outputs = op(sample.input, *sample.args, **sample.kwargs)
    torch.accelerator.synchronize()  # `to` may have left a copy to the host under way
    if not backward:
        return outputs, []
    leaves = leaves_of(sample)
    processed = tensors_in([sample.output_process_fn_grad(outputs)])
    losses = [loss(x) for x in processed if x.requires_grad]
    gradients = torch.autograd.grad(sum(losses), leaves, allow_unused=True) if losses else []
    torch.accelerator.synchronize()
    return outputs, gradients


def without_first_gradient(sample):
    """The sample without the gradient of its first input; None if it asks for no other."""
    leaves = leaves_of(sample)
    if len(leaves) < 2:
        return None
    return with_tensors(lambda x: x.detach() if x is leaves[0] else x, sample)


def has_backward(op, dtype):
    return op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")


# [operators.conformance.compare] Equal tensors have the same size and dtype and, except for rounding, the same numbers.
def inside(tensor):
    """Whether the storage is as large as sizes and strides say."""
    if tensor.layout != torch.strided:
        return True
    reach = compute_required_storage_length(tensor.shape, tensor.stride(), tensor.storage_offset())
    return reach * tensor.itemsize <= tensor.untyped_storage().nbytes()


def numbers_in(results):
    """Those that are no tensors, such as what `equal` returns."""
    kinds = bool, int, float, complex
    return [each for each in tree_leaves(results) if isinstance(each, kinds)]


def compare(here, there, same_numbers, is_announced=lambda: False):
    """Asserts that results of the device are those of the CPU. Where their sizes or dtypes
    differ, `is_announced` may say that PyTorch announces ours for our device."""
    if same_numbers:
        torch.testing.assert_close(*(numbers_in(each) for each in (here, there)), equal_nan=True)
    for ours, theirs in zip(tensors_in(here), tensors_in(there), strict=True):
        alike = (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        assert alike or is_announced(), "shape or type differs"
        assert inside(ours), "strides reach past the storage"
        if same_numbers and ours.shape == theirs.shape:
            # Sixteen bits are rounded between operators where the CPU has one formula; eight must be
            # equal, and so must integers.
            rounded = theirs.is_floating_point() or theirs.is_complex()
            digits = theirs.itemsize // (2 if theirs.is_complex() else 1)
            tolerance = {1: 0, 2: 2e-2, 4: 1e-4, 8: 1e-9}[digits] if rounded else 0
            torch.testing.assert_close(
                ours.cpu(), theirs.to(ours.dtype), rtol=tolerance, atol=tolerance, equal_nan=True,
                check_stride=False,
            )  # fmt: skip


# [operators.conformance.accepted] Only inputs that the CPU accepts can be compared, and only operators that draw no random numbers.
def accepted(op, dtype, samples, view=lambda x: x):
    """The first inputs that the CPU accepts."""
    inputs = []
    backward = has_backward(op, dtype)
    for sample in op.sample_inputs("cpu", dtype, requires_grad=backward):
        if len(inputs) == samples:
            break
        if op.name == "tensor_split":  # It reads its indices on the host, on every device.
            sample.name = ON_HOST
        try:
            for each in filter(None, [sample, without_first_gradient(sample)]):
                run(op, on("cpu", each, view), backward)
            inputs.append(sample)
        except Exception:
            continue
    return inputs


def has_same_numbers(op, inputs):
    """Whether every run of an operator gives the same numbers, whatever the seed."""
    if op.name.startswith(INITIALIZED):
        return False
    for sample in inputs:
        torch.manual_seed(0)
        first, _ = run(op, on("cpu", sample), False)
        for seed in range(1, 6):
            torch.manual_seed(seed)
            other, _ = run(op, on("cpu", sample), False)
            try:
                torch.testing.assert_close(other, first, rtol=0, atol=0, equal_nan=True)
            except AssertionError:
                return False
    return True


# [-]
