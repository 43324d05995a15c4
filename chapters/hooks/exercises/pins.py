# SPDX-License-Identifier: BSD-3-Clause
"""Change: how many requests for pinned memory the cache has served."""


def pins(function):
    raise NotImplementedError("Return (requests, of these the ones that the cache served).")
