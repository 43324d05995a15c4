# SPDX-License-Identifier: BSD-3-Clause
"""Runs PyTorch's operator database on a device and on the CPU, and compares.

python -m torch_openreg.conformance                        every operator, every question
python -m torch_openreg.conformance --only add softmax     these operators
python -m torch_openreg.conformance --dtypes float32       values in these dtypes
python -m torch_openreg.conformance --quick                a tenth of it
python -m torch_openreg.conformance --device other         another PrivateUse1 backend
python -m torch_openreg.conformance --json r.json          keep the results; run it again to go on
python -m torch_openreg.conformance --html r.html          and a page to sort and filter them
python -m torch_openreg.conformance --expected known.txt   fail unless exactly these fail
"""

import argparse
import json
import os
import select
import signal
import sys
import time
import warnings
from pathlib import Path

import torch

from .conformance_questions import DTYPES, QUICK, all_questions
from .conformance_report import expectations, print_table, surprises, write_page
from .conformance_samples import database

# [operators.conformance.child] Each operator runs in a forked child, so that a crash ends one line of the report.
SECONDS = 300  # for one question


def answer(op, questions, device, pipe):
    """Runs in the child, and writes a JSON object for each question up to the first that
    fails, after which the device may be of no use."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    module = torch.get_device_module(device)
    for question in questions:
        signal.alarm(SECONDS)
        if hasattr(module, "reset_fallback_report"):
            module.reset_fallback_report()
        result = {"status": "pass", "message": ""}
        try:
            result |= question.examine(op, question.dtype, question.samples, device)
        except BaseException as error:
            result = {"status": "fail", "message": f"{type(error).__name__}: {error}"[:400]}
        if hasattr(module, "fallback_report"):
            result["fallbacks"] = sorted(module.fallback_report())
        os.write(pipe, json.dumps(result).encode() + b"\n")
        if result["status"] == "fail":
            break
    os._exit(0)


# [operators.conformance.child.process] The child writes to a pipe, so that its results outlive it.
class Child:
    """A process that answers questions about one operator, and the end of a pipe that it
    writes to."""

    def __init__(self, op, questions, device):
        self.pipe, writer = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            answer(op, questions, device, writer)
        os.close(writer)
        self.text = b""

    def has_ended(self):
        """Reads what there is, which blocks if there is nothing."""
        piece = os.read(self.pipe, 1 << 16)
        self.text += piece
        return not piece

    def results(self):
        """The results, fewer than there are questions if one failed."""
        os.close(self.pipe)
        _, status = os.waitpid(self.process, 0)
        results = [json.loads(line) for line in self.text.splitlines()]
        if status or not results:
            results.append({"status": "crash", "message": f"ended with status {status}"})
        return results


# [operators.conformance.judge] After a failure, another child answers the questions that are left.
def judge(op, questions, device):
    """Starts children one after the other. A generator: it yields each child, is resumed when
    the child has ended, and returns a result for each question."""
    results = []
    while len(results) < len(questions):
        child = Child(op, questions[len(results) :], device)
        yield child
        results += child.results()
    return [
        {"operator": op.full_name, "question": question.name, **result}
        for question, result in zip(questions, results)
    ]


# [operators.conformance.sweep] The process that forks the children never uses the device, which does not survive a fork.
def sweep(ops, questions, device, workers):
    """Yields the list of results of each operator, with so many children at a time."""
    waiting = [
        judge(op, [each for each in questions if each.dtype in op.supported_dtypes("cpu")], device)
        for op in reversed(ops)
    ]
    running = {}
    while waiting or running:
        while waiting and len(running) < workers:
            judging = waiting.pop()
            try:
                child = next(judging)
                running[child.pipe] = child, judging
            except StopIteration as finished:
                yield finished.value
        for pipe in select.select(list(running), [], [])[0] if running else []:
            if running[pipe][0].has_ended():
                waiting.append(running.pop(pipe)[1])


# [operators.conformance.keep] Results are written every two seconds, so that a second run can continue one that was stopped.
def read(file, device):
    """The results in `file`, which must be of this device and this release of PyTorch."""
    if not file or not file.exists():
        return []
    kept = json.loads(file.read_text())
    of, now = (kept["device"], kept["torch"]), (device, torch.__version__)
    if of != now:
        sys.exit(
            f"{file} has results of {of[0]} with PyTorch {of[1]}, not of {now[0]} with {now[1]}; "
            "remove it, or name another file."
        )
    return kept["results"]


def keep(file, device, results):
    about = {"torch": torch.__version__, "device": device, "results": results}
    fresh = file.with_name(file.name + ".new")
    fresh.write_text(json.dumps(about, indent=0))
    fresh.replace(file)


# [operators.conformance.names] Unknown names are refused before the sweep.
def chosen(ops, names):
    """The operators of these names; all if there are none."""
    unknown = [name for name in names if name not in ops]
    if unknown:
        near = [name for name in ops if unknown[0] in name][:3]
        hint = f"; there are {', '.join(near)}" if near else ""
        sys.exit(f"PyTorch's operator database has no entry {unknown[0]}{hint}.")
    return [ops[name] for name in names or ops]


def device_of(text):
    """The type of device that a text names."""
    try:
        device = torch.device(text).type
    except RuntimeError:
        device = None
    if device in (None, "cpu", "meta") or not hasattr(torch, device):
        sys.exit(
            f"{text} is no device to judge; install its backend, and give the name that "
            "it has in torch.device."
        )
    return device


def dtypes_of(names):
    unknown = [name for name in names if not isinstance(getattr(torch, name, None), torch.dtype)]
    if unknown:
        sys.exit(f"PyTorch has no dtype {unknown[0]}; float32 is one.")
    return [getattr(torch, name) for name in names] or DTYPES


# [operators.conformance.main] The command runs the sweep and writes the report.
def main():
    parser = argparse.ArgumentParser(
        prog="python -m torch_openreg.conformance",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--device", default="openreg")
    parser.add_argument("--only", nargs="+", default=[], metavar="OPERATOR")
    parser.add_argument("--dtypes", nargs="+", default=[], metavar="DTYPE")
    parser.add_argument("--samples", type=int, default=8, help="inputs for each question")
    parser.add_argument("--quick", action="store_true", help="few inputs, in four dtypes")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--html", type=Path, metavar="FILE")
    parser.add_argument("--expected", type=Path, nargs="+", default=[], metavar="FILE")
    options = parser.parse_args()
    device, dtypes = device_of(options.device), dtypes_of(options.dtypes)
    questions = QUICK if options.quick else all_questions(options.samples, dtypes)
    results = read(options.json, device)
    finished = {result["operator"] for result in results}
    ops = [op for op in chosen(database(), options.only) if op.full_name not in finished]
    due = 0
    for number, found in enumerate(sweep(ops, questions, device, options.workers), 1):
        results += found
        if sys.stderr.isatty():
            print(f"\r{number} of {len(ops)} operators\033[K", end="", file=sys.stderr)
        if options.json and (time.monotonic() > due or number == len(ops)):
            keep(options.json, device, results)
            due = time.monotonic() + 2
    unexpected, passing = surprises(results, expectations(options.expected))
    print_table(results, unexpected, passing)
    if options.html:
        write_page(options.html, device, results)
    sys.exit(1 if unexpected or passing else 0)


if __name__ == "__main__":
    main()

# [-]
