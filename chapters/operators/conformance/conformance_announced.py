# SPDX-License-Identifier: BSD-3-Clause
"""What FakeTensor announces for a device is what the device returns: dtype, shape and strides."""

import torch
from torch._subclasses.fake_utils import CrossRefFakeMode, MetadataMismatchError

from . import conformance_samples as given


# [operators.conformance.announced] Some announcements are wrong for every device, so the CPU is asked the same.
def on_cpu(tensor):
    """A copy with the same strides, also if they are zero."""
    if isinstance(tensor, torch.device):
        return torch.device("cpu")
    twin = torch.empty(0, dtype=tensor.dtype)
    bytes_on_cpu = tensor.untyped_storage().cpu()
    twin.set_(bytes_on_cpu, tensor.storage_offset(), tensor.shape, tensor.stride())
    return torch._conj(twin) if tensor.is_conj() else twin


class Announced(CrossRefFakeMode):
    """Notes the operators that return something else than announced for their device, unless
    they do so on the CPU too, and goes on."""

    def __init__(self):
        super().__init__(check_aliasing=False)
        self.differ = {}

    def compared(self, func, args, kwargs):
        """The result, and how it differs from the announcement."""
        try:
            return super().__torch_dispatch__(func, (), args, kwargs), None
        except (MetadataMismatchError, AssertionError) as error:
            return func(*args, **kwargs), str(error).splitlines()[0]

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result, here = self.compared(func, args, kwargs)
        inputs = [list(args), kwargs]
        if here and all(x.layout == torch.strided for x in given.tensors_in(inputs)):
            twins = given.mapped(on_cpu, inputs)
            if not self.compared(func, *twins)[1]:
                self.differ[func.name()] = here
        return result


# [operators.conformance.announced.ask] Compilers plan with what is announced, so a difference makes a compiled program wrong.
def differences(program, device):
    """The operators of `program(device)` that return something else than announced."""
    with Announced() as mode:
        program(device)
    return mode.differ


def announced(op, dtype, samples, device):
    """The operators called by `op`, forward and backward."""
    backward = given.has_backward(op, dtype)
    inputs = given.accepted(op, dtype, samples)
    for sample in inputs:

        def program(place, sample=sample):
            given.run(op, given.on(place, sample), backward, given.plain_sum)

        differ = differences(program, device)
        assert not differ, differ
    return {"samples": len(inputs)}


# [-]
