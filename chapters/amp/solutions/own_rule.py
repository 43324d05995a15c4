# SPDX-License-Identifier: BSD-3-Clause
"""Extend: an operator of our own, and its rule: the widest type among its inputs."""

import torch

# Registrations last as long as this object.
library = torch.library.Library("mine", "DEF")
library.define("blend(Tensor a, Tensor b, float weight) -> Tensor")
AUTOCAST = torch._C.DispatchKey.AutocastPrivateUse1


def blend(a, b, weight):
    if a.dtype != b.dtype:
        raise TypeError(f"blend takes two tensors of one type, not {a.dtype} and {b.dtype}.")
    return a + (b - a) * weight


def blend_in_the_widest_type(a, b, weight):
    widest = torch.promote_types(a.dtype, b.dtype)
    # Without this the call would come back here, for ever.
    with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(AUTOCAST)):
        return torch.ops.mine.blend(a.to(widest), b.to(widest), weight)


library.impl("blend", blend, "PrivateUse1")
library.impl("blend", blend_in_the_widest_type, "AutocastPrivateUse1")
