# SPDX-License-Identifier: BSD-3-Clause
"""Change: finds where a program waits for the device, in the trace of a profile."""


def waits(path, least_us=1000):
    raise NotImplementedError("Return (annotation, operator, microseconds) of each wait.")
