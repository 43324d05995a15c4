# SPDX-License-Identifier: BSD-3-Clause
"""Compiles the operators of PyTorch's database, with one sample each, and compares with eager mode.

    python sweep.py                 all operators of float32
    python sweep.py add sub         these operators

Prints one line for each operator that differs, or that eager mode refuses. `sweep_expected.txt` has
all of them, with reasons; eager mode refuses each.
"""

import argparse
import os
import subprocess
import sys
import tempfile

import torch
from torch_openreg.conformance_samples import INITIALIZED, database, on

# Operators that are compiled as one program, because each takes the compiler seconds.
TOGETHER = 32


def names():
    return [name for name, op in database().items() if torch.float32 in op.supported_dtypes("cpu")]


def sample_of(op):
    return on("openreg", next(iter(op.sample_inputs("cpu", torch.float32))))


def called(count):
    """A function that calls operators one after another, without a loop, in which Dynamo gives up."""
    one = "ops[{0}](samples[{0}][0], *samples[{0}][1], **samples[{0}][2])"
    calls, names = ", ".join(map(one.format, range(count))), {}
    exec(f"def call(ops, samples):\n    return [{calls}]", names)
    return names["call"]


def why_not(ops):
    """Why the compiled operators differ from those of eager mode, or nothing."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    results = []
    try:
        call = called(len(ops))
        for function in (call, torch.compile(call)):
            samples = [sample_of(op) for op in ops]
            torch.manual_seed(0)
            results.append(function(ops, [(s.input, s.args, s.kwargs) for s in samples]))
            torch.openreg.synchronize()
        torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4, equal_nan=True)
    except Exception as error:
        return f"{type(error).__name__}: {error}".strip().splitlines()[0][:160]
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    return "" if graphs else "Dynamo finds nothing to compile"


def compare(known, some):
    """Prints the operators that differ, and says on stderr which ones are next."""
    print(*some, file=sys.stderr, flush=True)
    why = why_not([known[name] for name in some])
    if why and len(some) == 1:
        print(f"{some[0]}: {why}", flush=True)
    elif why:
        compare(known, some[: len(some) // 2])
        compare(known, some[len(some) // 2 :])


def sweep(wanted):
    """The lines, and one for each operator that ends the process."""
    lines = []
    while wanted:
        with tempfile.TemporaryFile("w+") as progress:
            command = [sys.executable, __file__, "--here", *wanted]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=progress, text=True)
            lines += done.stdout.splitlines()
            if done.returncode == 0:
                return lines
            progress.seek(0)
            ended = [line.split() for line in progress if set(line.split()) <= set(wanted)][-1]
        if len(ended) == 1:
            lines.append(f"{ended[0]}: ends the process with {done.returncode}")
        wanted = wanted[wanted.index(ended[0]) :]
        for name in ended if len(ended) > 1 else ():
            lines += sweep([name])
        wanted = wanted[len(ended) :]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("operators", nargs="*")
    parser.add_argument("--here", action="store_true", help="in this process")
    options = parser.parse_args()
    wanted = options.operators or [name for name in names() if name not in INITIALIZED]
    if options.here:
        torch._inductor.config.fallback_random = True
        torch._dynamo.config.fail_on_recompile_limit_hit = True
        for start in range(0, len(wanted), TOGETHER):
            compare(database(), wanted[start : start + TOGETHER])
        os._exit(0)  # A device that an operator has stopped would say so once more.
    for line in sweep(wanted):
        print(line)


if __name__ == "__main__":
    main()
