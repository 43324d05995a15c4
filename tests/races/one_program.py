# SPDX-License-Identifier: BSD-3-Clause
"""Runs one program of the corpus and prints all its tensors: `one_program.py NAME right|wrong`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import corpus
import torch
from torch.utils._pytree import tree_leaves


def locals_of(program, right):
    """The variables that `program` ends with, and what it returns."""
    found = {}

    def watch(frame, event, result):
        if event == "return" and frame.f_code is program.__code__:
            found.update(frame.f_locals, returned=result)

    sys.setprofile(watch)
    program(right)
    sys.setprofile(None)
    return found


_, name, way = sys.argv
variables = locals_of(getattr(corpus, name), way == "right")
for index in range(torch.openreg.device_count()):
    torch.openreg.synchronize(index)
for variable, value in sorted(variables.items()):
    sums = [
        each.detach().double().sum().item() for each in tree_leaves(value) if torch.is_tensor(each)
    ]
    print(variable, *sums)
