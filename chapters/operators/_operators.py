# SPDX-License-Identifier: BSD-3-Clause
"""What runs on the CPU: this chapter's share of `torch.openreg`."""

import contextlib

from . import _C

# [operators.python] The fallback is honest: it counts.
__all__ = ["fallback", "fallback_report", "reset_fallback_report"]


def fallback_report():
    """How often each operator ran on the CPU for want of an openreg kernel, by name."""
    return _C.fallback_report()


def reset_fallback_report():
    """Begins to count anew, and to warn anew."""
    _C.reset_fallback_report()


# [operators.python.fallback] For a few lines, another rule about falling back.
@contextlib.contextmanager
def fallback(policy):
    """A block, or a function, in which what has no openreg kernel runs on the CPU silently
    ("silent"), or with one warning for each operator ("warn"), or not at all ("error").

    It holds for this thread, and for the backward passes that begin in the block.
    """
    scope = _C.FallbackScope(policy)
    try:
        yield
    finally:
        del scope


# [-]
