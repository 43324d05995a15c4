# SPDX-License-Identifier: BSD-3-Clause
"""Extend: the numbers of `torch.rand` on openreg, told in advance from a seed and an offset."""


def philox(seed, offset, place):
    raise NotImplementedError("Return the four words after ten rounds.")


def rand(seed, offset, count):
    raise NotImplementedError("Make two fractions of each place's four words.")
