# SPDX-License-Identifier: BSD-3-Clause
"""Change: which kernels serve most of a program's calls."""


def fewest(path, share):
    raise NotImplementedError("Return the fewest operators that make `share` of all calls.")
