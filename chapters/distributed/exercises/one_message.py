# SPDX-License-Identifier: BSD-3-Clause
"""Change: the mean of many tensors over all ranks, in one collective."""


def mean_of_all(tensors, group=None):
    raise NotImplementedError("Put the tensors into one, reduce it, and copy the parts back.")
