# SPDX-License-Identifier: BSD-3-Clause
"""Change: what a call ran on the CPU."""


def fell_back(function, *arguments):
    raise NotImplementedError("Return what the call returns, and what it ran on the CPU.")
