# SPDX-License-Identifier: BSD-3-Clause
"""What FakeTensor announces for openreg is what the device returns: dtypes, shapes and strides.

PyTorch compares each operator that a program calls with its FakeTensor's answer; the programs
are the entries of the operator database, forward and backward, and its modules.
"""

import sweep
import torch
from torch._subclasses.fake_utils import CrossRefFakeMode, MetadataMismatchError


class Announced(CrossRefFakeMode):
    """Collects the operators whose results differ from their announcement, and goes on."""

    def __init__(self):
        super().__init__(check_aliasing=False)
        self.differ = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        try:
            return super().__torch_dispatch__(func, types, args, kwargs)
        except (MetadataMismatchError, AssertionError) as error:
            self.differ[func.name()] = str(error).splitlines()[0]
            return func(*args, **(kwargs or {}))


def announced(op, dtype, samples):
    """Raises if an operator called by `op` returns what was not announced."""
    backward = sweep.has_backward(op, dtype)
    inputs = sweep.accepted(op, dtype, samples)
    mode = Announced()
    for sample in inputs:
        moved = sweep.on("openreg", sample)
        with mode:
            sweep.run(op, moved, backward)
    assert not mode.differ, mode.differ
    return {"samples": len(inputs)}
