# SPDX-License-Identifier: BSD-3-Clause
"""What a call ran on the CPU."""

import torch


def fell_back(function, *arguments):
    """(what the call returns, how often each operator fell back in it)"""
    before = torch.openreg.fallback_report()
    result = function(*arguments)
    after = torch.openreg.fallback_report()
    counts = {name: count - before.get(name, 0) for name, count in after.items()}
    return result, {name: count for name, count in counts.items() if count}
