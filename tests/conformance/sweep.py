# SPDX-License-Identifier: BSD-3-Clause
"""Runs PyTorch's operator database on openreg and on the CPU, and compares.

PyTorch lists its operators with inputs for each (`op_db`), and tests its own
devices with them. Each operator runs in a forked child, so that a crash ends
one line of the report and not the report; what follows is asked in another child.
"""

import argparse
import collections
import concurrent.futures
import functools
import json
import os
import pathlib
import signal
import sys
import warnings
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

SECONDS = 300
CHECKS = {"equal_nan": True, "check_stride": False}


class Question(NamedTuple):
    """What is asked of each operator that the CPU supports in `dtype`.

    `examine(op, dtype, samples)` raises what is wrong, and returns what else the report says.
    """

    examine: Callable
    dtype: torch.dtype
    samples: int


def operators():
    """The database's entries by full name."""
    from torch.testing._internal import common_methods_invocations as database

    # Random operators are wrapped so that they draw the same numbers each time;
    # no two devices draw the same, so they must be seen for what they are.
    database.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
    return {op.full_name: op for op in database.op_db}


def mapped(change, value):
    """`value` with every tensor and every device name in it changed."""
    if isinstance(value, (torch.Tensor, torch.device)):
        return change(value)
    if isinstance(value, (list, tuple)):
        changed = [mapped(change, item) for item in value]
        return type(value)(*changed) if hasattr(value, "_fields") else type(value)(changed)
    if isinstance(value, dict):
        return {key: mapped(change, item) for key, item in value.items()}
    return change(value) if value == "cpu" else value


def tensors_in(value):
    found = []
    mapped(lambda x: found.append(x) or x if isinstance(x, torch.Tensor) else x, value)
    return found


def on(device, sample):
    """A copy of the sample on a device: some operators write into their inputs."""

    def move(value):
        if not isinstance(value, torch.Tensor):
            return device
        moved = value.detach().clone().to(device)
        return moved.requires_grad_(value.requires_grad)

    return sample.transform(lambda value: mapped(move, value))


def leaves_of(sample):
    """The inputs whose gradients are asked for."""
    inputs = tensors_in([sample.input, sample.args, sample.kwargs])
    return [x for x in inputs if x.requires_grad]


def run(op, sample, backward):
    """The outputs, and the gradients of the inputs if `backward`."""
    outputs = op(sample.input, *sample.args, **sample.kwargs)
    torch.openreg.synchronize()  # `to` may have left a copy to the host under way.
    if not backward:
        return outputs, []
    leaves = leaves_of(sample)
    processed = tensors_in([sample.output_process_fn_grad(outputs)])
    losses = [x.abs().sum() for x in processed if x.requires_grad]
    return outputs, torch.autograd.grad(sum(losses), leaves, allow_unused=True) if losses else []


def part_of(sample):
    """The sample without the gradient of its first input; none if it asks for no other."""
    leaves = leaves_of(sample)

    def drop(value):
        return value.detach() if value is leaves[0] else value

    return sample.transform(lambda x: mapped(drop, x)) if len(leaves) > 1 else None


def has_backward(op, dtype):
    return op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")


def inside(tensor):
    """Whether the storage is as large as sizes and strides say."""
    if tensor.layout != torch.strided or not tensor.numel():
        return True
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride()))
    reach = tensor.storage_offset() + last + 1
    return reach * tensor.itemsize <= tensor.untyped_storage().nbytes()


def compare(here, there, same_numbers, is_announced=lambda: False):
    """Raises if two answers differ. Where their shapes or dtypes do, `is_announced` may say that
    PyTorch announces ours for our device."""
    for ours, theirs in zip(tensors_in(here), tensors_in(there), strict=True):
        alike = (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        assert alike or is_announced(), "shape or type differs"
        assert inside(ours), "strides reach past the storage"
        if same_numbers and ours.shape == theirs.shape:
            # Sixteen bits are rounded between operators where the CPU has one formula.
            small = theirs.is_floating_point() and theirs.itemsize == 2
            tolerance = {"rtol": 2e-2, "atol": 2e-2} if small else {"rtol": 1e-4, "atol": 1e-4}
            expected = theirs.to(ours.dtype)
            torch.testing.assert_close(ours.cpu(), expected, **tolerance, **CHECKS)


def is_random(op, inputs):
    """Whether another seed gives other numbers, for any of the inputs."""
    for sample in inputs:
        torch.manual_seed(0)
        first, _ = run(op, on("cpu", sample), False)
        for seed in range(1, 6):
            torch.manual_seed(seed)
            other, _ = run(op, on("cpu", sample), False)
            try:
                torch.testing.assert_close(other, first, rtol=0, atol=0, equal_nan=True)
            except AssertionError:
                return True
    return False


def accepted(op, dtype, samples):
    """The first inputs that the CPU accepts: with others nobody can be compared."""
    inputs = []
    backward = has_backward(op, dtype)
    for sample in op.sample_inputs("cpu", dtype, requires_grad=backward):
        if len(inputs) == samples:
            break
        try:
            for each in filter(None, [sample, part_of(sample)]):
                run(op, on("cpu", each), backward)
            inputs.append(sample)
        except Exception:
            continue
    return inputs


class Served(TorchDispatchMode):
    """The paths that the operators of a program take."""

    def __init__(self):
        super().__init__()
        self.paths = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        from torch_openreg import dispatch

        self.paths.add(dispatch.path_of(func.name())[0])
        return func(*args, **(kwargs or {}))


def examine(op, dtype, samples):
    """Raises what is wrong with `op` on openreg; returns how many samples ran,
    and who served the first."""
    import announced

    inputs = accepted(op, dtype, samples)
    uninitialised = op.name.startswith(("empty", "new_empty"))
    same_numbers = not uninitialised and not is_random(op, inputs)
    for sample in inputs:
        backward = has_backward(op, dtype)
        expected = run(op, on("cpu", sample), backward)

        def is_announced(x=sample):
            return not announced.differences(lambda place: run(op, on(place, x), False))

        compare(run(op, on("openreg", sample), backward), expected, same_numbers, is_announced)
        if part := part_of(sample):  # some leave out what nobody asked for
            expected = run(op, on("cpu", part), backward)
            compare(run(op, on("openreg", part), backward), expected, same_numbers, is_announced)
        with torch.no_grad():  # some operators have another form for it
            expected = run(op, on("cpu", sample), False)
            compare(run(op, on("openreg", sample), False), expected, same_numbers, is_announced)
    served = Served()
    for sample in inputs[:1]:
        moved = on("openreg", sample)
        with served:
            run(op, moved, False)
    return {"samples": len(inputs), "served": sorted(served.paths)}


def child(op, questions, pipe):
    """Runs in the forked process, and writes a JSON object for each question up to the first
    that fails, after which the device may be of no use."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for examine, dtype, samples in questions:
        signal.alarm(SECONDS)
        torch.openreg.reset_fallback_report()
        result = {"status": "pass", "message": ""}
        try:
            result |= examine(op, dtype, samples)
        except BaseException as error:
            result = {"status": "fail", "message": f"{type(error).__name__}: {error}"[:400]}
        result["fallbacks"] = sorted(torch.openreg.fallback_report())
        os.write(pipe, json.dumps(result).encode() + b"\n")
        if result["status"] == "fail":
            break
    os._exit(0)


def answers(op, questions):
    """The answers from one child; fewer than there are questions if one failed."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        child(op, questions, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        results = [json.loads(line) for line in pipe]
    _, status = os.waitpid(process, 0)
    if status or not results:
        message = f"ended with status {status}"
        results.append({"status": "crash", "message": message, "fallbacks": []})
    return results


def judge(op, questions):
    """One operator's result for each question, the first to be asked in a new child
    after a failure."""
    results = []
    while len(results) < len(questions):
        results += answers(op, questions[len(results) :])
    return results


def sweep(names, questions):
    """The results of the named operators, by the question's and the operator's name."""
    ops = operators()
    results = {question: {} for question in questions}
    for name in names:
        asked = {
            q: each
            for q, each in questions.items()
            if each.dtype in ops[name].supported_dtypes("cpu")
        }
        for question, result in zip(asked, judge(ops[name], list(asked.values()))):
            results[question][name] = result
    return results


def sweep_all(questions, workers=2, only=None):
    """The results of all operators. Fresh processes do it: a child forked from
    one that uses the device could not use it."""
    names = [name for name in operators() if not only or name in only]
    parts = [names[i :: workers * 4] for i in range(workers * 4)]
    spawn = torch.multiprocessing.get_context("spawn")
    together = {question: {} for question in questions}
    with concurrent.futures.ProcessPoolExecutor(workers, mp_context=spawn) as pool:
        for part in pool.map(functools.partial(sweep, questions=questions), parts):
            for question, results in part.items():
                together[question] |= results
    return together


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=pathlib.Path, help="write all results here")
    parser.add_argument("--samples", type=int, default=3, help="inputs for each operator")
    parser.add_argument("--dtype", default="float32", help="of the inputs")
    parser.add_argument("names", nargs="*", help="only these operators")
    options = parser.parse_args()
    question = Question(examine, getattr(torch, options.dtype), options.samples)
    results = sweep_all({"all": question}, only=options.names)["all"]
    for name, result in sorted(results.items()):
        if result["status"] != "pass":
            print(f"{result['status']:5} {name}: {result['message'].splitlines()[0][:120]}")
    counts = collections.Counter(result["status"] for result in results.values())
    fell_back = sum(bool(result["fallbacks"]) for result in results.values())
    print(dict(counts), f"{fell_back} of {len(results)} fell back somewhere")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1, sort_keys=True))


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    main()
