# SPDX-License-Identifier: BSD-3-Clause
"""Extend: the product of two sparse matrices, composed of operators of the device."""

import torch

# Registrations last as long as this object.
library = torch.library.Library("aten", "IMPL")


def matmul(one, other):
    raise NotImplementedError("Each entry of one matrix meets a row of the other.")


library.impl("_sparse_sparse_matmul", matmul, "SparsePrivateUse1")
