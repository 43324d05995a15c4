# SPDX-License-Identifier: BSD-3-Clause
"""What Python adds to `torch.ops.openreg`: shapes without data, and gradients."""

import torch
from torch.library import impl, register_autograd

# [operators.custom.python] Nothing for `torch.openreg`: operators are in `torch.ops.openreg`.
__all__ = []


# [operators.custom.python.meta] Kernels for the device `meta`: shape and type, and nothing else.
@impl("openreg::scale_mask_softmax", "meta")
def _softmax(input, mask, scale):
    return input.new_empty(input.shape)


@impl("openreg::scale_mask_softmax_backward", "meta")
def _softmax_backward(grad, output, scale):
    return output.new_empty(output.shape)


# [operators.custom.python.autograd] The gradient is an operator as well, and has a gradient too.
def _keep(ctx, inputs, output):
    ctx.save_for_backward(output)
    ctx.scale = inputs[2]


def _first(ctx, grad):
    (output,) = ctx.saved_tensors
    return torch.ops.openreg.scale_mask_softmax_backward(grad, output, ctx.scale), None, None


def _keep_backward(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:2])
    ctx.scale = inputs[2]


def _second(ctx, v):
    grad, y = ctx.saved_tensors
    along_grad, along_v = ((x * y).sum(-1, keepdim=True) for x in (grad, v))
    for_output = ctx.scale * (v * (grad - along_grad) - grad * along_v)
    return torch.ops.openreg.scale_mask_softmax_backward(v, y, ctx.scale), for_output, None


register_autograd("openreg::scale_mask_softmax", _first, setup_context=_keep)
register_autograd("openreg::scale_mask_softmax_backward", _second, setup_context=_keep_backward)


# [-]
