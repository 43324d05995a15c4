# SPDX-License-Identifier: BSD-3-Clause
"""Extend: the product of two sparse matrices, composed of operators of the device."""

import torch

library = torch.library.Library("aten", "IMPL")


def matmul(one, other):
    """Each entry of `one` meets the row of `other` that its column names."""
    one, other = one.coalesce(), other.coalesce().to_sparse_csr()
    (rows, columns), starts = one.indices(), other.crow_indices()
    lengths = starts.diff()[columns]
    entry = torch.repeat_interleave(lengths)
    before = lengths.cumsum(0) - lengths
    place = starts[columns[entry]] + torch.arange(len(entry), device=rows.device) - before[entry]
    indices = torch.stack([rows[entry], other.col_indices()[place]])
    values = one.values()[entry] * other.values()[place]
    return torch.sparse_coo_tensor(indices, values, (one.shape[0], other.shape[1])).coalesce()


library.impl("_sparse_sparse_matmul", matmul, "SparsePrivateUse1")
