# SPDX-License-Identifier: BSD-3-Clause
"""Change: which operators of a traced graph run under which modes."""

from collections import Counter

from torch_openreg.export_modes import modes_of


def operators_by_mode(gm):
    """How many calls of operators run under each tuple of modes; a mode is written as a text."""
    counts = Counter()
    for node, modes in modes_of(gm.graph, grad_enabled=True).items():
        if node.op == "call_function":
            counts[tuple(" ".join(map(str, mode.args)) for mode in modes)] += 1
    return counts
