# SPDX-License-Identifier: BSD-3-Clause
"""Which operators ran on the CPU."""

import torch

# [first.fallback.python] The report is a dictionary, with the most frequent operator first.
__all__ = ["allow_fallback", "fallback_report"]


def fallback_report(reset=False):
    """How often each operator ran on the CPU since the start or the last reset."""
    counts = dict(torch.ops.tiny.fallback_report(reset))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def allow_fallback(allow):
    """Whether operators without a kernel may run on the CPU; if not, they raise."""
    torch.ops.tiny.allow_fallback(allow)


# [-]
