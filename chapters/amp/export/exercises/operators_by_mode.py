# SPDX-License-Identifier: BSD-3-Clause
"""Change: which operators of a traced graph run under which modes."""


def operators_by_mode(gm):
    raise NotImplementedError("Count the calls of operators under each tuple of modes.")
