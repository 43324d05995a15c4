# SPDX-License-Identifier: BSD-3-Clause
"""What ran on the CPU: this chapter's share of `torch.openreg`."""

from . import _C

# [operators.python] The fallback is honest: it counts.
__all__ = ["fallback_report", "reset_fallback_report"]


def fallback_report():
    """How often each operator ran on the CPU for want of an openreg kernel, by name."""
    return _C.fallback_report()


def reset_fallback_report():
    """Begins to count anew."""
    _C.reset_fallback_report()


# [-]
