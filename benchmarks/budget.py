# SPDX-License-Identifier: BSD-3-Clause
"""Where the host's time of one small call goes, layer by layer, and how many instructions each of the
most used operators takes: `budget.py FILE` writes it as JSON.

Instructions are counted by `valgrind --tool=callgrind`, which repeats to a percent on any machine.
Nanoseconds come from samples that `perf` takes of the host's thread. Both know the function and the
library in which an instruction stands, and LAYERS says to which layer it belongs. The device's
threads do not count.
"""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

COUNT = 100
SECONDS = 4
# Valgrind knows no AVX-512: neither PyTorch nor the compiler of the chain may use it.
AVX2 = {"ATEN_CPU_CAPABILITY": "avx2", "TORCHINDUCTOR_CPP_MARCH": "x86-64-v3"}
# The first pattern that is found in "LIBRARY FUNCTION" decides.
LAYERS = (
    ("Python", r"^(libpython|python|_ctypes)"),
    ("PyTorch's binding", r"^libtorch_python"),
    ("the C library", r"^(libc\.|ld-linux|libstdc|libm\.|libgcc|libpthread|\[|vdso)"),
    ("the driver", r"^libopenreg"),
    ("our allocator", r"^libtorch_openreg.*(Cache|Bins|Alloc|[Bb]lock|tellOf|tellPro|sizeClass|trace)"),
    ("our operator and launch", r"^lib(torch_openreg|torch_bindings|orccl)"),
    ("the compiled program", r"^(c\w{20,}|main)\.so"),
    ("dispatcher and autograd",
     r"(Dispatch|KernelFunction|_ops::|VariableType|utograd|ADInplace|GradMode|InferenceMode|wrapper_)"),
    ("the CPU's kernel", r"(AVX|DEFAULT|_kernel|serial_for_each|for_each|vectorized|gemm|mkl)"),
    ("tensors and shapes", r"^lib(torch_cpu|c10|torch)"),
    ("other", r""),
)  # fmt: skip


def layer_of(library, function):
    text = f"{library} {function}"
    return next(name for name, pattern in LAYERS if re.search(pattern, text))


# The calls that are measured, in a process of their own.


def calls():
    """Each call by its name, for both devices."""
    import torch
    from compile import chain

    made = {}
    for device in ("cpu", "openreg"):
        x, y = (torch.rand(16).to(device) + 0.5 for _ in range(2))
        compiled = torch.compile(chain)
        made[f"x + y, {device}"] = lambda x=x, y=y: x + y
        made[f"x * y, {device}"] = lambda x=x, y=y: x * y
        made[f"a compiled chain, {device}"] = lambda x=x, compiled=compiled: compiled(x)
    return made


def operators():
    """A call of each of the most used operators, for both devices."""
    from most_used import make
    from most_used import operators as all_of_them

    return {
        f"{name}, {device}": make(function, shapes, device)
        for name, function, *shapes in all_of_them()
        for device in ("cpu", "openreg")
    }


def child(tool, which, *only):
    """Makes the calls under a tool, which is told when to look."""
    import torch

    torch.set_num_threads(1)
    made = {"calls": calls, "operators": operators}[which]()
    for name, call in made.items():
        for _ in range(COUNT if not only or name in only else 0):
            call()  # After as many calls in a row, a queue needs no new memory.
        torch.openreg.synchronize()
    for name, call in made.items():
        if tool == "callgrind":
            torch._C._valgrind_toggle()
            for _ in range(COUNT):
                call()
            torch._C._valgrind_toggle_and_dump_stats()
            print(name, flush=True)
        elif name in only:
            count, end = 0, time.monotonic() + SECONDS
            with open(only[1], "w") as perf:
                perf.write("enable\n")
                perf.flush()
                began = time.thread_time()
                while time.monotonic() < end:
                    for _ in range(100):
                        call()
                    count += 100
                took = time.thread_time() - began
                perf.write("disable\n")
            print(threading.get_native_id(), took / count * 1e9, flush=True)
        torch.openreg.synchronize()
    sys.stdout.flush()
    os._exit(0)  # The end of a Python that has compiled takes minutes under valgrind.


# What the two tools say.


def of_callgrind(text):
    """Instructions by library and function, of one call."""
    found, library, function, skip = collections.Counter(), "", "", False
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key == "ob":
            library = value.rsplit("/", 1)[-1]
        elif key == "fn":
            function = value
        elif key == "calls":
            skip = True  # The next line has the cost of what is called.
        elif re.match(r"[\d+*-]", line):
            _, *cost = line.split()  # A line may have no cost.
            if cost and not skip:
                found[library, function] += int(cost[0])
            skip = False
    return {place: count / COUNT for place, count in found.items()}


def of_perf(text):
    """Samples by library and function, from lines `SAMPLES LIBRARY SYMBOL`."""
    found = collections.Counter()
    for line in text.splitlines():
        match = re.match(r"\s*(\d+)\s+(\S+)\s+\[[.k]\] (.*)", line)
        if match:
            found[match[2], match[3].strip()] += int(match[1])
    return found


def by_layer(costs, whole=None):
    """The cost of each layer, in the order of LAYERS; scaled so that the sum is `whole`."""
    layers = collections.Counter()
    for place, cost in costs.items():
        layers[layer_of(*place)] += cost
    factor = whole / sum(layers.values()) if whole else 1
    return {name: round(layers[name] * factor) for name, _ in LAYERS if layers[name]}


def instructions(folder, which):
    """For each call, its instructions by library and function."""
    out = folder / which
    command = ["valgrind", "--tool=callgrind", "--collect-atstart=no"]
    command += [
        f"--callgrind-out-file={out}",
        "--separate-threads=yes",
        "--compress-strings=no",
        "--compress-pos=no",
    ]
    command += [sys.executable, __file__, "--child", "callgrind", which]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return {
        name: of_callgrind(Path(f"{out}.{n}-01").read_text())
        for n, name in enumerate(done.stdout.splitlines(), 1)
    }


def nanoseconds(folder, names):
    found, samples, pipe = {}, folder / "samples", folder / "pipe"
    os.mkfifo(pipe)
    for name in names:
        record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "5000", "-D", "-1"]
        record += [f"--control=fifo:{pipe}", "-o", str(samples), "--"]
        record += [sys.executable, __file__, "--child", "perf", "calls", name, str(pipe)]
        done = subprocess.run(record, check=True, capture_output=True, text=True)
        thread, whole = done.stdout.split()
        report = ["perf", "report", "-i", str(samples), f"--tid={thread}", "--stdio", "-q"]
        report += ["-F", "sample,dso,sym"]
        text = subprocess.run(report, check=True, capture_output=True, text=True).stdout
        found[name] = by_layer(of_perf(text), whole=float(whole))
    return found


def case_of(name, counted):
    """An operator in the form in which a run of the benchmarks keeps it."""
    cpu, ours = (round(sum(counted[f"{name}, {device}"].values())) for device in ("cpu", "openreg"))
    return {
        "figure": "instructions of the most used operators",
        "case": name,
        "unit": "instructions",
        "times": {"CPU": [cpu], "openreg": [ours]},
        "ratios": {"openreg": [round(ours / cpu, 3)]},
    }


def main():
    if sys.argv[1] == "--child":
        return child(*sys.argv[2:])
    os.environ.update(AVX2)
    with tempfile.TemporaryDirectory() as folder:
        # Samples first: what they compile is in Inductor's cache when valgrind runs.
        timed = nanoseconds(Path(folder), list(calls()))
        layered = instructions(Path(folder), "calls")
        counted = instructions(Path(folder), "operators")
    rows = [
        {"call": name, "instructions": by_layer(costs), "nanoseconds": timed[name]}
        for name, costs in layered.items()
    ]
    names = dict.fromkeys(name.rpartition(", ")[0] for name in counted)
    lists = {"calls": rows, "cases": [case_of(name, counted) for name in names]}
    text = ",\n".join(
        f'"{name}": [\n' + ",\n".join(map(json.dumps, each)) + "\n]" for name, each in lists.items()
    )
    Path(sys.argv[1]).write_text(f"{{{text}}}\n", "utf-8")


if __name__ == "__main__":
    main()
