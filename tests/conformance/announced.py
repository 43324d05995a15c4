# SPDX-License-Identifier: BSD-3-Clause
"""What FakeTensor announces for openreg is what the device returns: dtype, shape and strides.

PyTorch's own `CrossRefFakeMode` asks FakeTensor about each operator that a program calls, and
compares. Some announcements are wrong for every device, so the CPU is asked the same.
"""

import sweep
import torch
from torch._subclasses.fake_utils import CrossRefFakeMode, MetadataMismatchError


def on_cpu(tensor):
    """A copy with the same strides, also if they are zero."""
    if isinstance(tensor, torch.device):
        return torch.device("cpu")
    twin = torch.empty(0, dtype=tensor.dtype)
    bytes_on_cpu = tensor.untyped_storage().cpu()
    twin.set_(bytes_on_cpu, tensor.storage_offset(), tensor.shape, tensor.stride())
    return torch._conj(twin) if tensor.is_conj() else twin


class Announced(CrossRefFakeMode):
    """Notes the operators that return something else than announced for openreg, unless they do
    so on the CPU too, and goes on."""

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
        if here:
            twins = sweep.mapped(on_cpu, [list(args), kwargs])
            if not self.compared(func, *twins)[1]:
                self.differ[func.name()] = here
        return result


def differences(program):
    with Announced() as mode:
        program("openreg")
    return mode.differ


def of_operator(op, dtype, samples):
    """Raises if an operator called by `op`, forward and backward, returns what is not announced."""
    backward = sweep.has_backward(op, dtype)
    inputs = sweep.accepted(op, dtype, samples)
    for sample in inputs:
        differ = differences(lambda place, x=sample: sweep.run(op, sweep.on(place, x), backward))
        assert not differ, differ
    return {"samples": len(inputs)}
