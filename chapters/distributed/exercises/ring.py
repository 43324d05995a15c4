# SPDX-License-Identifier: BSD-3-Clause
"""Extend: an all_reduce in which each rank talks to its two neighbors only."""


def ring_all_reduce(tensor, group=None):
    raise NotImplementedError("Pass slices around twice: first add them, then hand out the sums.")
