# SPDX-License-Identifier: BSD-3-Clause
"""Change: how many orders of a program may have different results."""


def interleavings(streams):
    raise NotImplementedError("Yield each order of all steps; a step is (stream, index).")


def orders(streams):
    raise NotImplementedError("Return the number of classes of equivalent orders.")
