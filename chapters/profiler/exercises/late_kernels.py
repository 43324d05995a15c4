# SPDX-License-Identifier: BSD-3-Clause
"""Change: which kernels were late, and which were slow."""


def late(trace):
    raise NotImplementedError("Return the names of the kernels that waited longer than they ran.")
