# SPDX-License-Identifier: BSD-3-Clause
"""Extend: an operator of our own, and its rule: the widest dtype among its inputs."""

import torch

# Registrations last as long as this object.
library = torch.library.Library("mine", "DEF")
library.define("blend(Tensor a, Tensor b, float weight) -> Tensor")


def blend(a, b, weight):
    raise NotImplementedError("Refuse two dtypes; return a + (b - a) * weight.")


def blend_in_the_widest_type(a, b, weight):
    raise NotImplementedError("Cast both, and call the operator below autocast.")


library.impl("blend", blend, "PrivateUse1")
library.impl("blend", blend_in_the_widest_type, "AutocastPrivateUse1")
