# SPDX-License-Identifier: BSD-3-Clause
"""Markers and the history of memory: this chapter's share of `torch.openreg`."""

from . import memory, profiler

# [profiler.python] Two modules, with the names that `torch.cuda` users expect.
__all__ = ["memory", "profiler"]

# [-]
