# SPDX-License-Identifier: BSD-3-Clause
"""Records the operator calls of a program, and repeats them on a device and on the CPU.

python -m torch_openreg.calls calls.jsonl                  compares results and times
python -m torch_openreg.calls calls.jsonl --quick          values only, without the large calls
python -m torch_openreg.calls calls.jsonl --device other   another PrivateUse1 backend
python -m torch_openreg.calls calls.jsonl --json r.json    keeps the results

`with recording(file):` writes such a file, on any device.
"""

import argparse
import collections
import itertools
import json
import math
import re
import statistics
import sys
import time
from pathlib import Path

import torch
from torch._prims_common import compute_required_storage_length
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

# [operators.calls.tensor] A tensor is recorded by its dtype, its geometry and the range of its values.
__all__ = ["Call", "judge", "read", "recording"]

EXACT = 64  # of integers so few, the values are kept: they are often indices that must differ
NAMED = (torch.dtype, torch.layout, torch.memory_format)


def geometry(x):
    """A tensor as plain data, without its values."""
    about = {"dtype": str(x.dtype).removeprefix("torch."), "size": list(x.shape)}
    return about if x.is_contiguous() else about | {"stride": list(x.stride())}


def described(x):
    """The same, with its values if they are few, else with their range."""
    about = geometry(x)
    if x.numel() and not x.is_complex():
        if x.numel() <= EXACT and not x.is_floating_point():
            return about | {"values": x.tolist()}
        finite = x.detach()[x.isfinite()]
        if finite.numel():
            about["range"] = [float(f"{x.item():.4g}") for x in (finite.min(), finite.max())]
    return about


# [operators.calls.encode] An argument without a representation is refused, because the call could not be repeated.
def encoded(value, describe):
    """An argument as something that JSON has."""
    if isinstance(value, torch.Tensor):
        return {"tensor": describe(value)}
    if isinstance(value, (list, tuple)):
        return [encoded(each, describe) for each in value]
    if isinstance(value, dict):
        return {name: encoded(each, describe) for name, each in value.items()}
    if isinstance(value, torch.device):
        return {"device": None}
    if isinstance(value, NAMED):
        return {"torch": str(value).removeprefix("torch.")}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"A call with an argument of type {type(value).__name__} cannot be recorded.")


# [operators.calls.record] Two calls are the same if only the values of their tensors differ, so equal layers fill few lines.
class recording(TorchDispatchMode):
    """Writes the calls of `aten` operators to `file`, most frequent first, when the block ends.

    Views are left out, calls that draw random numbers, and those with a sparse tensor.
    Raises TypeError for an argument that JSON cannot hold, such as a generator.
    """

    def __init__(self, file):
        super().__init__()
        self.file, self.counts, self.first = file, collections.Counter(), {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        dense = all(x.layout == torch.strided for x in tensors)
        draws = torch.Tag.nondeterministic_seeded in func.tags
        if func.namespace == "aten" and dense and not func.is_view and not draws:
            key = json.dumps([str(func), encoded([args, kwargs], geometry)])
            if key not in self.first:
                self.first[key] = encoded([args, kwargs], described)
            self.counts[key] += 1
        return func(*args, **kwargs)

    def __exit__(self, *exception):
        super().__exit__(*exception)
        with open(self.file, "w") as out:
            for key, count in self.counts.most_common():
                args, kwargs = self.first[key]
                call = {"count": count, "op": json.loads(key)[0], "args": args, "kwargs": kwargs}
                out.write(json.dumps(call) + "\n")


# [operators.calls.rebuild] The values of a tensor are drawn from the recorded range, the same ones for both devices.
def rebuilt(about, generator):
    """A tensor on the CPU like the one that was recorded."""
    dtype, size = getattr(torch, about["dtype"]), about["size"]
    if "values" in about:
        return torch.tensor(about["values"], dtype=dtype).reshape(size)
    stride = about.get("stride") or torch.empty(size, device="meta").stride()
    low, high = about.get("range", (0, 1))
    count = compute_required_storage_length(size, stride, 0)
    if dtype.is_floating_point or dtype.is_complex:
        drawn = low + (high - low) * torch.rand(count, dtype=torch.float64, generator=generator)
        limits = torch.finfo(dtype)
        storage = drawn.clamp(limits.min, limits.max).to(dtype)
    else:
        storage = torch.empty(count, dtype=dtype)
        storage.random_(int(low), int(high) + 1, generator=generator)
    return storage.as_strided(size, stride)


def moved(x, device):
    """A copy of `x` on `device` with the same strides, of which some may be 0."""
    extent = x.untyped_storage().nbytes() // x.element_size()
    return x.as_strided((extent,), (1,)).to(device, copy=True).as_strided(x.size(), x.stride())


def decoded(value, device, generator):
    if isinstance(value, list):
        return [decoded(each, device, generator) for each in value]
    if not isinstance(value, dict):
        return value
    [(kind, content)] = value.items()
    if kind == "tensor":
        return rebuilt(content, generator)
    if kind == "torch":
        return getattr(torch, content)
    return torch.device(device) if kind == "device" else float(content)


# [operators.calls.call] A call that changes an argument is judged by that argument, too.
class Call:
    """A line of a file of calls."""

    def __init__(self, line):
        about = json.loads(line)
        self.count, self.name = about["count"], about["op"]
        self.args, self.kwargs = about["args"], about["kwargs"]
        operator, overload = self.name.removeprefix("aten.").split(".")
        self.op = getattr(getattr(torch.ops.aten, operator), overload)

    def arguments(self, device):
        generator = torch.Generator().manual_seed(0)
        args, values = decoded([self.args, list(self.kwargs.values())], device, generator)
        both = args, dict(zip(self.kwargs, values, strict=True))
        return tree_map_only(torch.Tensor, lambda x: moved(x, device), both)

    def results(self, device):
        """What it returns and the arguments that it changes, as tensors of the CPU."""
        args, kwargs = self.arguments(device)
        returned = self.op(*args, **kwargs)
        if "empty" in self.name:  # only the geometry is defined
            returned = tree_map_only(torch.Tensor, torch.zeros_like, returned)
        changed = [args, kwargs] if self.op._schema.is_mutable else []
        found = tree_leaves([returned, changed])
        return [x.cpu() if isinstance(x, torch.Tensor) else x for x in found]

    def elements(self):
        """The elements of its largest tensor."""
        sizes = re.findall(r'"size": (\[.*?\])', json.dumps([self.args, self.kwargs]))
        return max((math.prod(json.loads(size)) for size in sizes), default=0)

    # [operators.calls.seconds] The device is waited for once, so its queue hides what the host costs, as in a program.
    def seconds(self, device, repeats):
        """The time of one of `repeats` calls in a row."""
        args, kwargs = self.arguments(device)
        wait = torch.get_device_module(device).synchronize
        self.op(*args, **kwargs)
        wait()
        begin = time.perf_counter()
        for _ in range(repeats):
            self.op(*args, **kwargs)
        wait()
        return (time.perf_counter() - begin) / repeats


def read(file):
    """The calls of a file, in its order."""
    return [Call(line) for line in Path(file).read_text().splitlines()]


# [operators.calls.tolerance] A difference is small beside the largest number of a result.
TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 5e-2}  # of the largest number of a result
LARGE = 1 << 16  # elements


def largest(expected):
    """The largest magnitude among the numbers of a result. Those that stand for infinity are none."""
    numbers = torch.view_as_real(expected.resolve_conj()) if expected.is_complex() else expected
    sizes = numbers.double().abs()
    sizes = sizes[sizes < torch.finfo(numbers.dtype).max / 2]
    return sizes.max().item() if sizes.numel() else 0


# [operators.calls.judge] The CPU decides what is right; where it refuses a call, the call says nothing of the device.
def difference(expected, actual):
    """What differs, in a sentence; empty if nothing does."""
    if not isinstance(expected, torch.Tensor):
        return "" if expected == actual else f"{actual} instead of {expected}"
    if (expected.dtype, expected.shape) != (actual.dtype, actual.shape):
        wanted = f"{expected.dtype} {list(expected.shape)}"
        return f"{actual.dtype} {list(actual.shape)} instead of {wanted}"
    exact = not (expected.is_floating_point() or expected.is_complex())
    allowed = 0 if exact else TOLERANCE.get(expected.dtype, 1e-4) * max(largest(expected), 1e-6)
    try:
        torch.testing.assert_close(actual, expected, rtol=0, atol=allowed, equal_nan=True)
    except AssertionError as error:
        return " ".join(str(error).split())
    return ""


def judge(call, device):
    """`("right", "")`, `("wrong", difference)`, `("refused", error)` or, if the CPU refuses it, `("left out", error)`."""
    try:
        expected = call.results("cpu")
    except (RuntimeError, IndexError, ValueError) as error:
        return "left out", str(error).splitlines()[0]
    try:
        actual = call.results(device)
    except (RuntimeError, IndexError, ValueError) as error:
        return "refused", str(error).splitlines()[0]
    pairs = zip(expected, actual, strict=True)
    found = next(filter(None, itertools.starmap(difference, pairs)), "")
    return ("wrong", found) if found else ("right", "")


# [operators.calls.time] Short and alternating series on both devices, so that a change of the machine meets both.
def ratio(call, device, series=5):
    """The median of the device's time over the CPU's."""
    repeats = max(1, min(50, int(0.01 / max(call.seconds("cpu", 1), 1e-6))))
    return statistics.median(
        call.seconds(device, repeats) / call.seconds("cpu", repeats) for _ in range(series)
    )


# [operators.calls.main] The command prints the calls that are not right, and how long the others take.
def main():
    parser = argparse.ArgumentParser(
        prog="python -m torch_openreg.calls",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("calls", type=Path, metavar="CALLS")
    parser.add_argument("--device", default="openreg")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    if not options.calls.is_file():
        sys.exit(f"{options.calls} is no file; `with recording(file):` writes one.")
    rows = []
    for call in read(options.calls):
        if options.quick and call.elements() > LARGE:
            continue
        status, why = judge(call, options.device)
        row = {"operator": call.name, "count": call.count, "status": status, "why": why}
        if status == "right" and not options.quick:
            row["ratio"] = ratio(call, options.device)
        rows.append(row)
        if status != "right":
            print(f"{call.name} {status}: {why}")
    counts = collections.Counter(row["status"] for row in rows)
    print(", ".join(f"{count} {status}" for status, count in counts.most_common()))
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    if ratios:
        print(
            f"time over the CPU's: median {statistics.median(ratios):.2f}, worst {max(ratios):.2f}"
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=0))
    sys.exit(1 if counts["wrong"] or counts["refused"] else 0)


if __name__ == "__main__":
    main()

# [-]
