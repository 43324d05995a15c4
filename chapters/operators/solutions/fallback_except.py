# SPDX-License-Identifier: BSD-3-Clause
"""Extend: a block in which nothing may fall back, but for what is named."""

import contextlib

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class _Excepting(TorchDispatchMode):
    """Sees each operator that arrives at the backend; a backward pass takes it along."""

    def __init__(self, names):
        super().__init__()
        self.names = names

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        named = operator.name() in self.names
        with torch.openreg.fallback("silent") if named else contextlib.nullcontext():
            return operator(*args, **(kwargs or {}))


@contextlib.contextmanager
def fallback(policy, except_=()):
    """`torch.openreg.fallback`, which operators called as in `fallback_report()` need not obey."""
    with torch.openreg.fallback(policy), _Excepting(frozenset(except_)):
        yield
