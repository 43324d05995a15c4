# SPDX-License-Identifier: BSD-3-Clause
"""What FakeTensor announces for openreg is what the device returns: dtype, shape and strides.

PyTorch's own `CrossRefFakeMode` asks FakeTensor about each operator that a program calls, and
compares. Some announcements are wrong for every device, so the CPU is asked the same.
"""

import sweep
from torch._subclasses.fake_utils import CrossRefFakeMode, MetadataMismatchError


class Announced(CrossRefFakeMode):
    """Notes the operators whose results differ from their announcement, and goes on."""

    def __init__(self):
        super().__init__(check_aliasing=False)
        self.differ = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        try:
            return super().__torch_dispatch__(func, types, args, kwargs)
        except (MetadataMismatchError, AssertionError) as error:
            self.differ[func.name()] = str(error).splitlines()[0]
            return func(*args, **(kwargs or {}))


def differences(program):
    """The operators that `program(device)` calls and that return on openreg what is not announced,
    unless they do so on the CPU too."""
    with Announced() as here:
        program("openreg")
    if not here.differ:
        return {}
    with Announced() as there:
        program("cpu")
    return {name: here.differ[name] for name in here.differ.keys() - there.differ.keys()}


def of_operator(op, dtype, samples):
    """Raises if an operator called by `op`, forward and backward, returns what is not announced."""
    backward = sweep.has_backward(op, dtype)
    inputs = sweep.accepted(op, dtype, samples)
    for sample in inputs:
        differ = differences(lambda place, x=sample: sweep.run(op, sweep.on(place, x), backward))
        assert not differ, differ
    return {"samples": len(inputs)}
