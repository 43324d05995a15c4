# SPDX-License-Identifier: BSD-3-Clause
"""What an operator of the database is asked. Each question raises what is wrong."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import conformance_samples as given
from .conformance_announced import announced, differences
from .conformance_refusals import errors, in_place, outputs, types
from .conformance_samples import on, run


# [operators.conformance.question] A question is asked about every operator that the CPU supports in its dtype.
class Question(NamedTuple):
    """`examine(op, dtype, samples, device)` raises what is wrong with the first `samples` inputs,
    and returns what else the report says."""

    examine: Callable
    dtype: torch.dtype
    samples: int

    @property
    def name(self):
        return f"{self.examine.__name__} {str(self.dtype).removeprefix('torch.')}"


# [operators.conformance.served] The report says which path the operators of a sample take.
class Served(TorchDispatchMode):
    """The paths that the operators of a program take."""

    def __init__(self):
        super().__init__()
        self.paths = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        from . import dispatch

        self.paths.add(dispatch.path_of(func.name())[0])
        return func(*args, **(kwargs or {}))


# [operators.conformance.values] Outputs are compared, and all gradients, some of the gradients, and outputs without autograd.
# For devices, PyTorch announces statistics of other sizes or dtypes than its CPU's kernels return.
STATISTICS = (
    "native_layer_norm", "native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update",
)  # fmt: skip


def is_announced(op, sample, device):
    """Whether the results, of other sizes or dtypes than the CPU's, are those that PyTorch announces."""
    return op.name in STATISTICS and not differences(
        lambda place: run(op, on(place, sample), False), device
    )


def values(op, dtype, samples, device):
    """The first inputs, forward and backward; and who served the first."""
    inputs = given.accepted(op, dtype, samples)
    same_numbers = given.has_same_numbers(op, inputs)
    backward = given.has_backward(op, dtype)
    for sample in inputs:
        asked = partial(is_announced, op, sample, device)

        def judge(each, backward, asked=asked):
            expected = run(op, on("cpu", each), backward)
            given.compare(run(op, on(device, each), backward), expected, same_numbers, asked)

        judge(sample, backward)
        if part := given.without_first_gradient(sample):  # some leave out what nobody asked for
            judge(part, backward)
        with torch.no_grad():  # some operators have another form for it
            judge(sample, False)
    served = Served()
    for sample in inputs[:1]:
        moved = on(device, sample)
        with served:
            run(op, moved, False)
    return {"samples": len(inputs), "served": sorted(served.paths)}


# [operators.conformance.views] The same values are given with gaps, with a conjugate bit and with a negative bit.
def spread(x):
    """The values of `x` with a gap after each, and the dimensions the other way round."""
    if x.layout != torch.strided or not x.dim():
        return x
    room = x.new_zeros((*x.shape[::-1], 2))  # as_strided reads the gaps too
    return room[..., 0].permute(*range(x.dim())[::-1]).copy_(x)


def conjugated(x):
    return x.conj_physical().conj() if x.is_complex() else x


def negated(x):
    whole = x.layout == torch.strided and (x.is_floating_point() or x.is_complex())
    return torch._neg_view(-x) if whole else x


def views(op, dtype, samples, device):
    """The first inputs, each in three other forms, forward and backward."""
    backward, count = given.has_backward(op, dtype), 0
    for view in (spread, conjugated, negated):
        inputs = given.accepted(op, dtype, samples, view)
        same_numbers = given.has_same_numbers(op, inputs)
        for sample in inputs:
            expected = run(op, on("cpu", sample, view), backward)
            result = run(op, on(device, sample, view), backward)
            asked = partial(is_announced, op, sample, device)
            given.compare(result, expected, same_numbers, asked)
        count += len(inputs)
    return {"samples": count}


# [operators.conformance.all] Values are compared in all dtypes; questions that hardly depend on the dtype are asked in one.
DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16,
    torch.complex64, torch.complex128, torch.complex32,
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2,
]  # fmt: skip


def all_questions(samples, dtypes=DTYPES):
    """Everything there is to ask, with so many inputs for each question about values."""
    few = min(samples, 2)
    return [
        *(Question(values, dtype, samples) for dtype in dtypes),
        *(Question(views, dtype, few) for dtype in (torch.float32, torch.complex64)),
        *(Question(announced, dtype, few) for dtype in (torch.float32, torch.bfloat16)),
        *(Question(ask, torch.float32, few) for ask in (in_place, outputs, types, errors)),
    ]


QUICK = [
    Question(values, torch.float32, 2),
    *(Question(values, dtype, 1) for dtype in (torch.bfloat16, torch.float16, torch.complex64)),
    *(Question(announced, dtype, 1) for dtype in (torch.float32, torch.bfloat16)),
    *(Question(ask, torch.float32, 1) for ask in (views, in_place, outputs, types, errors)),
]

# [-]
