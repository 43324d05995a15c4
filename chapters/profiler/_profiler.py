# SPDX-License-Identifier: BSD-3-Clause
"""Markers, the history of memory and the sanitizer: this chapter's share of `torch.openreg`."""

from . import memory, profiler, sanitizer
from .sanitizer import races

# [profiler.python] Modules have the names that users of `torch.cuda` expect.
__all__ = ["memory", "profiler", "races", "sanitizer"]

# [-]
