# SPDX-License-Identifier: BSD-3-Clause
"""How much of a graph could run at the same time."""

import re


def critical_path(text):
    """(nodes, longest chain) of a graph, from the text that `debug_dump` wrote."""
    nodes = re.findall(r"^  (\d+) \[label=", text, re.M)
    length = dict.fromkeys(map(int, nodes), 1)
    # A node comes after those that it depends on.
    for before, after in re.findall(r"^  (\d+) -> (\d+);", text, re.M):
        length[int(after)] = max(length[int(after)], length[int(before)] + 1)
    return len(nodes), max(length.values(), default=0)
