# SPDX-License-Identifier: BSD-3-Clause
"""Extend: several generators whose offsets do not overlap, from one."""


def split(generator, parts, offsets_each):
    raise NotImplementedError("Return `parts` generators, and move `generator` behind them.")
