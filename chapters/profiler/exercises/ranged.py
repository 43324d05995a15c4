# SPDX-License-Identifier: BSD-3-Clause
"""Change: every call of a function becomes a range."""


def ranged(function):
    raise NotImplementedError("Return a function that does the same inside a range of its name.")
