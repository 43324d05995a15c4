# SPDX-License-Identifier: BSD-3-Clause
"""Change: the step of a program that fails on the device."""


def failing_step(steps, x):
    raise NotImplementedError("Return the number of the first step that fails, or None.")
