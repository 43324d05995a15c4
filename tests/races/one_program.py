# SPDX-License-Identifier: BSD-3-Clause
"""Runs one program of the corpus and prints what it returns: `one_program.py NAME right|wrong`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import corpus
import torch
from torch.utils._pytree import tree_leaves

_, name, way = sys.argv
result = getattr(corpus, name)(way == "right")
torch.openreg.synchronize()
for each in tree_leaves(result):
    print(each.detach().double().sum().item() if isinstance(each, torch.Tensor) else each)
