# SPDX-License-Identifier: BSD-3-Clause
"""Change: a block in which nothing may run on the CPU."""

import contextlib

import torch


@contextlib.contextmanager
def no_fallback():
    """Raises at its end if an operator fell back within, and names each with its count."""
    before = torch.openreg.fallback_report()
    yield
    after = torch.openreg.fallback_report()
    fell = {name: n - before.get(name, 0) for name, n in after.items() if n > before.get(name, 0)}
    if fell:
        raise RuntimeError(f"These operators ran on the CPU: {fell}.")
