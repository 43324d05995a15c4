# SPDX-License-Identifier: BSD-3-Clause
"""The graph that the book shows before and after the pass; writes it into the folder given."""

import sys
from pathlib import Path

import torch
from torch_openreg.export import draw, replace_autocast_with_hop_pass


def forward(x, w):
    y = x + 1
    with torch.autocast("openreg", dtype=torch.bfloat16, cache_enabled=False):
        a = y @ w
        with torch.no_grad():
            b = a @ w
        with torch.autocast("openreg", dtype=torch.bfloat16, cache_enabled=False):
            c = a @ b
    return c * 2


def pictures():
    from graphs import traced

    x, w = (torch.ones(2, 2, device="openreg") for _ in "xw")
    before = traced(forward, x, w)
    after, _ = replace_autocast_with_hop_pass(before, None)
    return {"before.dot": draw(before), "after.dot": draw(after)}


if __name__ == "__main__":
    for name, text in pictures().items():
        (Path(sys.argv[1]) / name).write_text(text)
