# SPDX-License-Identifier: BSD-3-Clause
"""Extend: a block in which nothing may fall back, except the operators that are named."""

import contextlib

from torch.utils._python_dispatch import TorchDispatchMode


class _Excepting(TorchDispatchMode):
    def __init__(self, names):
        raise NotImplementedError("Keep the names.")

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        raise NotImplementedError("Call the operator, under another policy if it is named.")


@contextlib.contextmanager
def fallback(policy, except_=()):
    raise NotImplementedError("Enter the policy and the mode.")
