# SPDX-License-Identifier: BSD-3-Clause
"""Which implementation of attention a call would use."""

import torch
from torch.nn.attention import SDPBackend


def chosen(query, key, value, **options):
    """The name of the implementation that `scaled_dot_product_attention` would use."""
    return SDPBackend(torch._fused_sdp_choice(query, key, value, **options)).name
