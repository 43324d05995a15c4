# SPDX-License-Identifier: BSD-3-Clause
"""Change: how many offsets a call reserves."""


def offset():
    raise NotImplementedError("Return the next free offset of the current device.")


def reserved(function, *arguments):
    raise NotImplementedError("Return how far the call moves the generator of the device.")
