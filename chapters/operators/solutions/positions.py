# SPDX-License-Identifier: BSD-3-Clause
"""One number for each entry of a sparse tensor."""

import torch


def positions(sparse):
    """The place that each entry has among all elements of the sparse dimensions, row by row."""
    found = torch.zeros(sparse._nnz(), dtype=torch.int64, device=sparse.device)
    for index, size in zip(sparse._indices(), sparse.shape, strict=False):
        found = found * size + index
    return found
