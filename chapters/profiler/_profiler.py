# SPDX-License-Identifier: BSD-3-Clause
"""Markers, the history of memory and the sanitizer: this chapter's share of `torch.openreg`."""

import atexit

import torch

from . import memory, profiler, sanitizer
from .sanitizer import races, violations

# [profiler.python] Modules have the names that users of `torch.cuda` expect.
__all__ = ["memory", "profiler", "races", "sanitizer", "violations"]


# [profiler.python.exit] A profile that is still on when the program ends is ended, because PyTorch would crash.
@atexit.register
def _end_profile():
    if torch.autograd._profiler_enabled():
        torch.autograd._disable_profiler()


# [-]
