# SPDX-License-Identifier: BSD-3-Clause
"""Change: which strings of ours a compiled program needs."""


def asked(function, *arguments):
    raise NotImplementedError("Return the names of the functions of Overrides that Inductor calls.")
