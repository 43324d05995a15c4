# SPDX-License-Identifier: BSD-3-Clause
"""The losses that two models reach in float32, in bfloat16, and in float16 with a scaler."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/end_to_end"))

from test_mixed_precision import classify, sort, train

print("          before   float32  bfloat16   float16")
for task in (classify, sort):
    runs = [train(task, dtype) for dtype in (torch.float32, torch.bfloat16, torch.float16)]
    losses = [runs[0][0], *(after for _, after in runs)]
    print(f"{task.__name__:<8}", *(f"{loss:8.4f}" for loss in losses))
