# SPDX-License-Identifier: BSD-3-Clause
"""Tells each kernel's operations and their rate, from the shapes that its operator was given."""


def add_flops(trace, formulas):
    """Adds `flops` and `GFLOP/s` to the kernels in a trace that was recorded with shapes.

    `formulas` has, by operator, a function of the shapes of its arguments.
    """
    slices = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    operators = {e["args"].get("External id"): e for e in slices if e["cat"] == "cpu_op"}
    for kernel in slices:
        operator = operators.get(kernel.get("args", {}).get("External id"))
        if kernel["cat"] != "kernel" or not operator or operator["name"] not in formulas:
            continue
        flops = formulas[operator["name"]](*operator["args"]["Input Dims"])
        # A kernel may be shorter than the clock can tell.
        kernel["args"] |= {"flops": flops, "GFLOP/s": flops / max(kernel["dur"], 1e-3) / 1e3}
