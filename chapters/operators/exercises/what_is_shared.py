# SPDX-License-Identifier: BSD-3-Clause
"""Change: which arguments an operator shares with its results, and which it writes."""


def shared(operator):
    raise NotImplementedError("Return the names of the shared arguments, and of the written ones.")
