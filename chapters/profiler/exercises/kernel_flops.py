# SPDX-License-Identifier: BSD-3-Clause
"""Open: each kernel's operations and their rate, from the shapes that its operator was given."""


def add_flops(trace, formulas):
    raise NotImplementedError("Add flops and GFLOP/s to the kernels whose operator has a formula.")
