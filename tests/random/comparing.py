# SPDX-License-Identifier: BSD-3-Clause
"""How a line ended on the CPU and on the device, and whether the tensors of both agree."""

import warnings

import torch

# Relative to the largest number of a tensor: sums are not taken in the same order for all strides.
TOLERANCE = {
    torch.float16: 4e-3,
    torch.complex32: 4e-3,
    torch.bfloat16: 3e-2,
    torch.float32: 2e-5,
    torch.complex64: 2e-5,
    torch.float64: 1e-10,
    torch.complex128: 1e-10,
}

OVERLAPS = 1  # what PyTorch's function for it says of an expanded tensor

# Of two faults of a line, the device may tell the other one: shapes are compared before memory.
SHARES_MEMORY = "unsupported operation: some elements"

# PyTorch's Meta functions in Python are stricter about the dtype of an output than the kernels.
OUTPUT_REFUSED = "Attempting to cast from"


def outcome(line, space):
    """The error that a line raises in this namespace, on the host or from the device; None if none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(line, space)
            torch.accelerator.synchronize()
    except Exception as error:
        return error
    return None


def disagreement(raised, here, there):
    """What differs between two namespaces after a line; None if nothing does."""
    on_cpu, on_device = raised
    if on_cpu is None and on_device is not None:
        if isinstance(on_device, NotImplementedError) or OUTPUT_REFUSED in str(on_device):
            return None  # refused in a sentence
        return f"only the device raises {type(on_device).__name__}: {str(on_device)[:300]}"
    if on_cpu is not None and on_device is None:
        return f"only the CPU raises {type(on_cpu).__name__}: {str(on_cpu)[:300]}"
    if on_cpu is not None:
        other_fault = "could not run" in str(on_device) or SHARES_MEMORY in str(on_cpu)
        if type(on_cpu) is type(on_device) or other_fault:
            return None
        if isinstance(on_device, NotImplementedError) or isinstance(on_cpu, NotImplementedError):
            return None
        return f"the CPU raises {type(on_cpu).__name__}: {str(on_cpu)[:200]}; the device, {type(on_device).__name__}: {str(on_device)[:200]}"
    for name, value in here.items():
        if isinstance(value, (torch.Tensor, tuple, list)) and name[0] != "_":
            found = difference(value, there.get(name))
            if found:
                return f"{name} {found}"
    return None


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [each for part in value for each in tensors(part)]
    return []


def difference(here, there, factor=1):
    pairs = tensors(here), tensors(there)
    if len(pairs[0]) != len(pairs[1]):
        return f"has {len(pairs[0])} tensors on the CPU and {len(pairs[1])} on the device"
    for one, other in zip(*pairs, strict=True):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return f"is {one.dtype} {list(one.shape)} on the CPU and {other.dtype} {list(other.shape)} on the device"
        if one.layout != torch.strided:
            one, other = one.to_dense(), other.to_dense()
        copied, one = other.detach().cpu(), one.detach()
        if one.dtype == torch.complex32:  # Its kernels are few.
            copied, one = copied.to(torch.complex64), one.to(torch.complex64)
        if torch.equal(one, copied):
            continue
        tolerance = TOLERANCE.get(other.dtype, 0)
        bad = ~close(one, copied, factor * tolerance)
        if bad.any():
            place = tuple(bad.nonzero()[0].tolist())
            return f"{list(one.shape)} at {list(place)} is {one[place].item()} on the CPU and {copied[place].item()} on the device"
        adopt(one, other)
    return None


def close(one, other, tolerance):
    if one.is_complex():
        # Where one part is infinite, PyTorch does not promise the other.
        infinite = ~(one.isfinite() | other.isfinite())
        parts = torch.view_as_real(one.resolve_conj()), torch.view_as_real(other.resolve_conj())
        return close(*parts, tolerance).all(-1) | infinite
    one, other = one.double(), other.double()
    finite = one[one.isfinite()]
    scale = max(finite.abs().max().item(), 1) if finite.numel() else 1
    same = (one == other) | (one.isnan() & other.isnan())
    return same | ((one - other).abs() <= tolerance * scale)


def adopt(one, other):
    """Rounds both alike, so that a rounding error does not grow into another branch."""
    try:
        with torch.no_grad():
            other.copy_(one)
    except RuntimeError:
        pass  # an expanded tensor


def lay_alike(here, there):
    """Gives results the strides that they have on the CPU, so that a later view means the same elements."""
    new = {}
    for name, one in here.items():
        other = there.get(name)
        if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
            continue
        strided = one.layout == other.layout == torch.strided
        if not strided or one.requires_grad or one._is_view() or other._is_view():
            continue
        if one.stride() != other.stride() and torch._debug_has_internal_overlap(one) != OVERLAPS:
            if id(other) not in new:
                new[id(other)] = torch.empty_strided(
                    one.shape, one.stride(), dtype=one.dtype, device=other.device
                ).copy_(other)
            there[name] = new[id(other)]
