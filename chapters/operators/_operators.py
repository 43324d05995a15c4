# SPDX-License-Identifier: BSD-3-Clause
"""What runs on the CPU: this chapter's share of `torch.openreg`."""

import atexit

from torch.utils._contextlib import _DecoratorContextManager

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
class fallback(_DecoratorContextManager):
    """A block, a function or a generator, in which what has no openreg kernel runs on the CPU
    silently ("silent"), or with one warning for each operator ("warn"), or not at all ("error").

    It holds for this thread, and for the backward passes that begin in the block. The tasks of
    `asyncio` are one thread: while a block waits, its policy holds for the others as well.
    """

    def __init__(self, policy):
        self.policy, self.scopes = policy, []

    def clone(self):
        return type(self)(self.policy)

    def __enter__(self):
        self.scopes.append(_C.FallbackScope(self.policy))

    def __exit__(self, *error):
        self.scopes.pop()


# [operators.python.end] A program may end with a backward pass.
@atexit.register
def _settle_backward_threads():
    """A thread that still holds the pass would want Python's lock when Python is gone."""
    if _C.is_started() and not _C.is_forked():
        _C.settle_backward_threads()


# [-]
