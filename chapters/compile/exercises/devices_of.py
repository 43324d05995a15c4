# SPDX-License-Identifier: BSD-3-Clause
"""Change: on which devices a compiled program allocates."""


def devices(function, *arguments):
    raise NotImplementedError("Return the devices that the lines of the program name.")
