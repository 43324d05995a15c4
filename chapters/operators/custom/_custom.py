# SPDX-License-Identifier: BSD-3-Clause
"""Meta kernels and gradients of the operators in `torch.ops.openreg`."""

import torch
from torch.library import impl, register_autograd

# [operators.custom.python] This module adds no name to `torch.openreg`; the operators are in `torch.ops.openreg`.
__all__ = []


# [operators.custom.python.meta] Kernels for the device `meta` return a shape and a dtype.
@impl("openreg::scale_mask_softmax", "meta")
def _softmax(input, mask, scale):
    return input.new_empty(input.shape)


@impl("openreg::scale_mask_softmax_backward", "meta")
def _softmax_backward(grad, output, scale):
    return output.new_empty(output.shape)


# [operators.custom.python.autograd] The gradient is an operator too, and has a gradient of its own.
def _softmax_context(ctx, inputs, output):
    ctx.save_for_backward(output)
    ctx.scale = inputs[2]


def _softmax_gradient(ctx, grad):
    (output,) = ctx.saved_tensors
    return torch.ops.openreg.scale_mask_softmax_backward(grad, output, ctx.scale), None, None


def _softmax_backward_context(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:2])
    ctx.scale = inputs[2]


def _softmax_backward_gradient(ctx, v):
    grad, y = ctx.saved_tensors
    along_grad, along_v = ((x * y).sum(-1, keepdim=True) for x in (grad, v))
    for_output = ctx.scale * (v * (grad - along_grad) - grad * along_v)
    return torch.ops.openreg.scale_mask_softmax_backward(v, y, ctx.scale), for_output, None


register_autograd("openreg::scale_mask_softmax", _softmax_gradient, setup_context=_softmax_context)
register_autograd(
    "openreg::scale_mask_softmax_backward",
    _softmax_backward_gradient,
    setup_context=_softmax_backward_context,
)


# [-]
