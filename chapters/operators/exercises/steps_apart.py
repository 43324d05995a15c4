# SPDX-License-Identifier: BSD-3-Clause
"""Change: how far apart two results are, in numbers that lie between them."""


def place(x):
    raise NotImplementedError("Return the place of each float32 number among all of them.")


def steps(found, expected):
    raise NotImplementedError("Return the largest number of float32 steps between two elements.")
