# SPDX-License-Identifier: BSD-3-Clause
"""Operators of PyTorch's database, compiled: a few of each kind. `sweep.py` compiles the others."""

from pathlib import Path

import sweep
from torch._inductor import config

SOME = [
    "add", "bmm", "baddbmm", "cat", "cumsum", "gather", "index_add", "linalg.solve", "masked_fill",
    "max.reduction_with_dim", "nn.functional.conv2d", "nn.functional.layer_norm",
    "nn.functional.cross_entropy", "nn.functional.gelu",
    "nn.functional.scaled_dot_product_attention", "nonzero", "roll", "scatter_reduce.sum", "sort",
    "std", "take", "topk", "tril", "uniform", "where",
]  # fmt: skip


def test_some_operators_of_each_kind_return_what_they_return_in_eager_mode(capsys):
    known = sweep.database()
    with config.patch(fallback_random=True):
        sweep.compare(known, [name for name in SOME if name in known])
    assert capsys.readouterr().out == ""


def test_the_sweep_knows_these_operators():
    listed = Path(sweep.__file__).with_name("sweep_expected.txt").read_text().splitlines()
    assert set(SOME) | {line.split(":")[0] for line in listed} <= set(sweep.names())
