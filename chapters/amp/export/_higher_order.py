# SPDX-License-Identifier: BSD-3-Clause
"""Operators that take functions, such as `torch.cond`, under autocast on openreg."""

import torch

# [amp.higher-order] Higher-order operators have a dispatcher of their own, and fall through there too.
__all__ = []

autocast = torch._C.DispatchKey.AutocastPrivateUse1
torch._ops._HIGHER_ORDER_OP_DEFAULT_FALLTHROUGH_DISPATCH_KEYS.append(autocast)
for operator in torch._ops._higher_order_ops.values():
    operator.fallthrough(autocast)

# [-]
