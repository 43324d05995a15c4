# SPDX-License-Identifier: BSD-3-Clause
"""The fallback to the CPU: what this chapter adds to `torch.openreg`."""

import atexit
from threading import get_ident

from torch.utils._contextlib import _DecoratorContextManager

from . import _C

# [operators.python] A program can ask which operators fell back to the CPU, and how often.
__all__ = ["fallback", "fallback_report", "reset_fallback_report"]

_C.check_fallback_policy()


def fallback_report():
    """How often each operator without an openreg kernel ran on the CPU, by name."""
    return _C.fallback_report()


def reset_fallback_report():
    """Sets the counts to zero, and lets each operator warn once more."""
    _C.reset_fallback_report()


# [operators.python.fallback] A policy can be set for a block or a function.
class fallback(_DecoratorContextManager):
    """Sets the policy for operators without an openreg kernel, in a block, a function or a
    generator: they run on the CPU silently ("silent"), or with one warning for each operator
    ("warn"), or raise an error ("error").

    The policy applies to the calling thread and to backward passes that begin in the block. All
    tasks of `asyncio` share one thread: while a block awaits, its policy applies to the others too.
    """

    def __init__(self, policy):
        self.policy = policy
        self.scopes = {}  # by thread, because several may enter one object

    def clone(self):
        return type(self)(self.policy)

    def __enter__(self):
        scopes = self.scopes.setdefault(get_ident(), [])
        scopes.append(_C.FallbackScope(self.policy))

    def __exit__(self, *error):
        self.scopes[get_ident()].pop()


# [operators.python.end] At exit, Python waits for the threads of the last backward pass.
@atexit.register
def _wait_for_backward_threads():
    """A thread that still holds the pass would need the GIL after Python has shut down."""
    if _C.is_started() and not _C.is_forked():
        _C.wait_for_backward_threads()


# [-]
