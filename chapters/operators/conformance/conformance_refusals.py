# SPDX-License-Identifier: BSD-3-Clause
"""Questions about what a device refuses, overwrites and returns in the user's outputs."""

import functools
import itertools
import warnings

import torch

from . import conformance_samples as given
from .conformance_samples import on, run, tensors_in


# [operators.conformance.refused] The host must refuse what the CPU refuses, before anything is enqueued.
def wait():
    """The error that the device still has to tell, or None."""
    try:
        torch.accelerator.synchronize()
    except Exception as error:
        reset = getattr(torch.get_device_module(), "reset_device", None)
        if reset and isinstance(error, torch.AcceleratorError):
            reset()
        return f"late: {error}"


def attempt(call):
    """What `call` returns, or the error; `late` if it is the device's."""
    try:
        result = call()
    except Exception as error:
        told_inside = isinstance(error, torch.AcceleratorError) or " could not run " in str(error)
        told = f"late: {error}" if told_inside else f"{type(error).__name__}: {error}"
        return None, wait() or told
    late = wait()
    return (None, late) if late else (result, None)


def disagreement(what, theirs, ours):
    """A line about the two errors; None if both or neither refused, ours on the host."""
    if (theirs is None) != (ours is None) or (ours and ours.startswith("late")):
        return f"{what}: {ours} (CPU: {theirs})"
    return None


def report(lines):
    lines = [line[:150] for line in lines if line]
    assert not lines, "\n".join(lines)


def both(call, device):
    """`call` on the CPU and on the device, as `attempt` gives them."""
    return [attempt(functools.partial(call, where)) for where in ("cpu", device)]


# [operators.conformance.errors] The database also has inputs that every device must refuse.
def errors(op, dtype, samples, device):
    """Inputs of the database that must be refused."""
    if op.error_inputs_func is None:
        return {"samples": 0}
    lines, wrongs = [], list(op.error_inputs("cpu"))
    for wrong in wrongs:
        sample = wrong.sample_input
        (_, theirs), (_, ours) = both(lambda where, s=sample: run(op, on(where, s), False), device)
        lines.append(disagreement(str(wrong.error_regex), theirs, ours))
    report(lines)
    return {"samples": len(wrongs)}


# [operators.conformance.types] Dtypes that the CPU does not support must be refused, also after a call with empty tensors.
TYPES = [torch.bool, torch.int64, torch.float16, torch.complex64]


def types(op, dtype, samples, device):
    """The first inputs in dtypes that the CPU refuses."""
    lines = []
    refused = [t for t in TYPES if t not in op.supported_dtypes("cpu")]
    inputs = list(itertools.islice(op.sample_inputs("cpu", dtype), samples))
    for sample, other in itertools.product(inputs, refused):

        def call(where, sample=sample, other=other):
            moved = given.with_tensors(
                lambda x: x.to(other) if x.dtype == dtype else x, on(where, sample)
            )
            empty = given.with_tensors(lambda x: x.new_empty([0] * x.dim()), moved)
            attempt(lambda: run(op, empty, False))
            return run(op, moved, False)

        (_, theirs), (_, ours) = both(call, device)
        if theirs:
            lines.append(disagreement(str(other), theirs, ours))
    report(lines)
    return {"samples": len(inputs)}


# [operators.conformance.in-place] The in-place form leaves its result in the input.
def in_place(op, dtype, samples, device):
    """The first inputs, overwritten where the CPU takes them."""
    change = op.get_inplace()
    if change is None:
        return {"samples": 0}
    lines = []
    # PyTorch's databases mark inputs that are smaller than the result, which does not fit into them.
    inputs = [s for s in given.accepted(op, dtype, samples) if not s.broadcasts_input]
    same_numbers = given.has_same_numbers(op, inputs)

    def call(where, sample):
        with torch.no_grad():
            moved = on(where, sample)
            change(moved.input, *moved.args, **moved.kwargs)
            return moved.input

    for sample in inputs:
        (expected, theirs), (result, ours) = both(lambda where, s=sample: call(where, s), device)
        lines.append(disagreement("in place", theirs, ours))
        if theirs is None and ours is None:
            given.compare(result, expected, same_numbers)
    report(lines)
    return {"samples": len(inputs)}


# [operators.conformance.outputs] The user may pass outputs of the right or a wrong size, dense or with gaps, of the right or a wrong dtype.
OUTPUTS = {
    "right": torch.zeros_like,
    "with gaps": lambda t: t.new_zeros((*t.shape, 2))[..., 0],
    "transposed": lambda t: t.new_zeros(t.shape[::-1]).permute(*range(t.dim())[::-1]),
    "empty": lambda t: t.new_zeros(0),
    "of another size": lambda t: t.new_zeros((*t.shape, 1, 3)),
    "of another type": lambda t: t.new_zeros(
        t.shape, dtype=torch.int64 if t.is_floating_point() else torch.float32
    ),
    "of a wider type": lambda t: t.new_zeros(
        t.shape, dtype=torch.complex64 if t.is_floating_point() else torch.float64
    ),
}


# [operators.conformance.outputs.ask] Dense outputs of the right size keep the strides that the user gave them.
def into(op, sample, results, make, device):
    """The outputs that the user gave, and whether PyTorch warned of their size."""
    moved = on(device, sample)
    outs = [make(t.to(device)) for t in tensors_in(results)]
    kwargs = {**moved.kwargs, "out": outs[0] if isinstance(results, torch.Tensor) else tuple(outs)}
    if not tensors_in([moved.input, *moved.args]):  # a factory, for the CPU unless told
        kwargs["device"] = device
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        op(moved.input, *moved.args, **kwargs)
    return outs, any("was resized" in str(warning.message) for warning in said)


def differ(kind, ours, theirs, same_numbers):
    """What differs between two answers of `into`; None if nothing."""
    (here, warned_here), (there, warned_there) = ours, theirs
    try:
        assert warned_here == warned_there, f"warns: {warned_here}, CPU: {warned_there}"
        if kind in ("right", "with gaps", "transposed"):  # whose strides are the user's
            for one, other in zip(here, there, strict=True):
                assert one.stride() == other.stride() or not one.numel(), "strides differ"
        given.compare(here, there, same_numbers)
    except AssertionError as error:
        return f"{kind}: {error}"
    return None


# [operators.conformance.outputs.compare] The CPU decides which outputs are refused and what the others become.
def outputs(op, dtype, samples, device):
    """What becomes of `out=`."""
    if not op.supports_out:
        return {"samples": 0}
    lines = []
    inputs = given.accepted(op, dtype, samples)
    same_numbers = given.has_same_numbers(op, inputs)
    for sample, (kind, make) in itertools.product(inputs, OUTPUTS.items()):
        results = run(op, on("cpu", sample), False)[0]
        (theirs, refused), (ours, refused_here) = both(
            lambda where, s=sample, r=results, m=make: into(op, s, r, m, where), device
        )
        lines.append(disagreement(kind, refused, refused_here))
        if theirs and ours:
            lines.append(differ(kind, ours, theirs, same_numbers))
    report(lines)
    return {"samples": len(inputs)}


# [-]
