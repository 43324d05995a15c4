# SPDX-License-Identifier: BSD-3-Clause
"""Which kernels serve most of a program's calls."""

import collections
import json


def fewest(path, share):
    """The fewest operators that make at least `share` of the recorded calls, most frequent first."""
    calls = collections.Counter()
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            call = json.loads(line)
            calls[call["op"]] += call["count"]
    chosen, served = [], 0
    for operator, count in calls.most_common():
        if served >= share * calls.total():
            break
        chosen.append(operator)
        served += count
    return chosen
