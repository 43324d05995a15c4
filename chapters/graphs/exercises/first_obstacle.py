# SPDX-License-Identifier: BSD-3-Clause
"""Change: which line of a program keeps it from being captured."""


def first_obstacle(function):
    raise NotImplementedError("Capture the function; return the sentence and the line, or None.")
