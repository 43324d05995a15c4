# SPDX-License-Identifier: BSD-3-Clause
"""Gradients of the operators in `torch.ops.openreg`."""

from contextlib import contextmanager

import torch
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd.forward_ad import _set_fwd_grad_enabled
from torch.autograd.function import _SingleLevelFunction
from torch.library import Library

# [operators.custom.python] This module adds no name to `torch.openreg`; the operators are in `torch.ops.openreg`.
__all__ = []


# [operators.custom.python.level] The next level below autograd is the kernel or an outer transform of `torch.func`, which records derivatives of its own.
@contextmanager
def _next_level():
    # PyTorch runs a function's forward with both modes switched off.
    with torch.enable_grad(), _set_fwd_grad_enabled(True), torch._C._AutoDispatchBelowAutograd():
        yield


# [operators.custom.python.autograd] Both directions of the derivative are one operator, because the matrix of derivatives is symmetric.
class _Softmax(_SingleLevelFunction):
    @staticmethod
    def forward(input, mask, scale):
        with _next_level():
            return torch.ops.openreg.scale_mask_softmax(input, mask, scale)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)
        ctx.scale = inputs[2]

    @staticmethod
    def jvp(ctx, tangent, *_):
        (y,) = ctx.saved_tensors
        return torch.ops.openreg.scale_mask_softmax_backward(tangent, y, ctx.scale)

    @staticmethod
    def backward(ctx, grad):
        return _Softmax.jvp(ctx, grad), None, None


# [operators.custom.python.second] The backward operator has derivatives of its own: it is linear in the gradient, but not in the output.
class _SoftmaxBackward(_SingleLevelFunction):
    @staticmethod
    def forward(grad, output, scale):
        with _next_level():
            return torch.ops.openreg.scale_mask_softmax_backward(grad, output, scale)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:2])
        ctx.save_for_forward(*inputs[:2])
        ctx.scale = inputs[2]

    @staticmethod
    def jvp(ctx, grad_tangent, tangent, _):
        grad, y = ctx.saved_tensors
        terms = []
        if grad_tangent is not None:
            terms += [torch.ops.openreg.scale_mask_softmax_backward(grad_tangent, y, ctx.scale)]
        if tangent is not None:
            along, along_tangent = ((grad * x).sum(-1, keepdim=True) for x in (y, tangent))
            terms += [ctx.scale * (tangent * (grad - along) - y * along_tangent)]
        return sum(terms)

    @staticmethod
    def backward(ctx, v):
        grad, y = ctx.saved_tensors
        along_grad, along_v = ((x * y).sum(-1, keepdim=True) for x in (grad, v))
        for_output = ctx.scale * (v * (grad - along_grad) - grad * along_v)
        return torch.ops.openreg.scale_mask_softmax_backward(v, y, ctx.scale), for_output, None


# [operators.custom.python.register] `register_autograd` takes only the backward formula and drops the tangents of forward mode, so we register functions.
def _kernel(function):
    """The kernel for autograd's key. At each level of `torch.func`, the dispatcher calls it once."""

    def kernel(*arguments):
        with enable_single_level_autograd_function():
            return function.apply(*arguments)

    return kernel


_autograd = Library("openreg", "IMPL", "Autograd")
_autograd.impl("scale_mask_softmax", _kernel(_Softmax))
_autograd.impl("scale_mask_softmax_backward", _kernel(_SoftmaxBackward))

# [-]
