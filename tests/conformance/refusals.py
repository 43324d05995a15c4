# SPDX-License-Identifier: BSD-3-Clause
"""What the CPU refuses, openreg refuses, and on the host, before anything is enqueued.

The database's inputs again, in types that the CPU has no kernel for, and with outputs
of the user's: of the right size and of another, dense and not, of right and of wrong type.
"""

import functools
import itertools
import warnings

import sweep
import torch

TYPES = [torch.bool, torch.int64, torch.float16, torch.complex64]


def attempt(call):
    """What `call` returns, or the error; `late` if it is the device's."""
    try:
        result = call()
        torch.openreg.synchronize()
        return result, None
    except torch.AcceleratorError as error:
        torch.openreg.reset_device()
        return None, f"late: {error}"
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def disagreement(what, theirs, ours):
    """A line about the two errors; None if both or neither refused, ours on the host."""
    if (theirs is None) != (ours is None) or (ours and ours.startswith("late")):
        return f"{what}: {ours} (CPU: {theirs})"
    return None


def report(lines):
    lines = [line[:150] for line in lines if line]
    assert not lines, "\n".join(lines)


def in_type(sample, given, wanted):
    """The sample with its tensors of type `given` in another."""
    return sample.transform(
        lambda value: sweep.mapped(
            lambda x: x.to(wanted) if isinstance(x, torch.Tensor) and x.dtype == given else x, value
        )
    )


def emptied(sample):
    """The sample without elements: in any type it passes where others do not."""
    return sample.transform(
        lambda value: sweep.mapped(
            lambda x: x.new_empty([0] * x.dim()) if isinstance(x, torch.Tensor) else x, value
        )
    )


def types(op, dtype, samples):
    """Raises if a type that the CPU refuses is accepted, or refused late, even after a call
    with tensors that have no elements."""
    lines = []
    refused = [t for t in TYPES if t not in op.supported_dtypes("cpu")]
    inputs = itertools.islice(op.sample_inputs("cpu", dtype), samples)
    for sample, other in itertools.product(inputs, refused):
        errors = []
        for device in ("cpu", "openreg"):
            moved = in_type(sweep.on(device, sample), dtype, other)
            attempt(functools.partial(sweep.run, op, emptied(moved), False))
            errors.append(attempt(functools.partial(sweep.run, op, moved, False))[1])
        if errors[0]:
            lines.append(disagreement(str(other), *errors))
    report(lines)
    return {"samples": samples}


OUTPUTS = {
    "right": torch.zeros_like,
    "with gaps": lambda t: t.new_zeros((*t.shape, 2))[..., 0],
    "transposed": lambda t: t.new_zeros(t.shape[::-1]).permute(*range(t.dim())[::-1]),
    "empty": lambda t: t.new_zeros(0),
    "of another size": lambda t: t.new_zeros((*t.shape, 1, 3)),
    "of another type": lambda t: t.new_zeros(
        t.shape, dtype=torch.int64 if t.is_floating_point() else torch.float64
    ),
    "of a wider type": lambda t: t.new_zeros(
        t.shape, dtype=torch.complex64 if t.is_floating_point() else torch.float64
    ),
}


def into(op, sample, results, make, device):
    """The outputs that the user gave, and whether PyTorch warned of their size."""
    moved = sweep.on(device, sample)
    outs = [make(t.to(device)) for t in sweep.tensors_in(results)]
    kwargs = {**moved.kwargs, "out": outs[0] if isinstance(results, torch.Tensor) else tuple(outs)}
    if not sweep.tensors_in([moved.input, *moved.args]):  # a factory, for the CPU unless told
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
                assert one.stride() == other.stride(), "strides differ"
        sweep.compare(here, there, same_numbers)
    except AssertionError as error:
        return f"{kind}: {error}"
    return None


def outputs(op, dtype, samples):
    """Raises if what `out=` becomes is not what it becomes on the CPU."""
    if not op.supports_out:
        return {"samples": 0}
    lines = []
    inputs = sweep.accepted(op, dtype, samples)
    same_numbers = not op.name.startswith("empty") and not sweep.is_random(op, inputs)
    for sample, (kind, make) in itertools.product(inputs, OUTPUTS.items()):
        results = sweep.run(op, sweep.on("cpu", sample), False)[0]
        (theirs, refused), (ours, refused_here) = [
            attempt(functools.partial(into, op, sample, results, make, device))
            for device in ("cpu", "openreg")
        ]
        lines.append(disagreement(kind, refused, refused_here))
        if theirs and ours:
            lines.append(differ(kind, ours, theirs, same_numbers))
    report(lines)
    return {"samples": len(inputs)}
