# SPDX-License-Identifier: BSD-3-Clause
"""Extend: attention of any number of dimensions as attention of four."""

from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode


class any_dimension(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is not scaled_dot_product_attention or args[0].dim() < 2:
            return func(*args, **kwargs)
        return attention(*args, **kwargs)


def attention(query, key, value, attn_mask=None, *args, **kwargs):
    """All dimensions before the heads become one. Heads are the third dimension from the end."""
    sizes = query.shape[:-2]
    batch, heads = sizes[:-1], sizes[-1:] or (1,)

    def four(x, *rows_and_width):
        count = x.shape[-3] if x.dim() > 2 else 1
        return x.expand(*batch, count, *rows_and_width).reshape(-1, count, *rows_and_width)

    if attn_mask is not None and attn_mask.dim() != 2:
        scores = query.shape[-2], key.shape[-2]
        attn_mask = attn_mask.expand(*batch, *heads, *scores).reshape(-1, *heads, *scores)
    query, key, value = (four(x, *x.shape[-2:]) for x in (query, key, value))
    result = scaled_dot_product_attention(query, key, value, attn_mask, *args, **kwargs)
    return result.reshape(*sizes, *result.shape[-2:])
