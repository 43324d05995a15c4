# SPDX-License-Identifier: BSD-3-Clause
"""Change: which lines of a program hold its memory."""


def held(snapshot, file):
    raise NotImplementedError("Return the bytes that each line of the file holds.")
