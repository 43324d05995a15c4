# SPDX-License-Identifier: BSD-3-Clause
"""Which kernels were late, and which were slow."""


def late(trace):
    """The names of the kernels that waited longer than they ran, in the order of their beginnings."""
    kernels = [e for e in trace["traceEvents"] if e["ph"] == "X" and e.get("cat") == "kernel"]
    kernels.sort(key=lambda kernel: kernel["ts"])
    # A trace has microseconds, and the argument nanoseconds.
    return [k["name"] for k in kernels if k["args"]["queued ns"] > 1000 * k["dur"]]
