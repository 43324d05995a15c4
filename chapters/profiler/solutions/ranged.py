# SPDX-License-Identifier: BSD-3-Clause
"""Every call of a function becomes a range."""

import functools

import torch


def ranged(function):
    """The same function; each call is a range that has the function's name."""

    @functools.wraps(function)
    def inside(*arguments, **keywords):
        with torch.openreg.profiler.range(function.__name__):
            return function(*arguments, **keywords)

    return inside
