// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/launcher.h"

#include <ATen/ExpandUtils.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_safe_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <limits>

namespace openreg {
namespace {

// [operators.fused] The host refuses arguments that do not fit before it enqueues anything.
at::Tensor scaleMaskSoftmaxMeta(const at::Tensor& input, const at::Tensor& mask,
                                double /*scale*/) {
  TORCH_CHECK_TYPE(input.is_floating_point(),
                   "scale_mask_softmax does not take ", input.scalar_type(),
                   "; it takes floating types.");
  TORCH_CHECK_TYPE(mask.scalar_type() == at::kBool,
                   "The mask of scale_mask_softmax is of type ",
                   mask.scalar_type(),
                   "; it must be Bool, true where an element takes part.");
  TORCH_CHECK_VALUE(input.dim() > 0,
                    "scale_mask_softmax needs an input with rows; it has no "
                    "dimension.");
  TORCH_CHECK_VALUE(at::is_expandable_to(mask.sym_sizes(), input.sym_sizes()),
                    "A mask of ", mask.sym_sizes(),
                    " does not fit an input of ", input.sym_sizes(),
                    "; it must be expandable to it.");
  return at::empty_symint(input.sym_sizes(), input.options());
}

at::Tensor scaleMaskSoftmax(const at::Tensor& input, const at::Tensor& mask,
                            double scale) {
  at::Tensor out = scaleMaskSoftmaxMeta(input, mask, scale);
  launchRehearsed(
      "scale_mask_softmax",
      [scale](at::Tensor out, const at::Tensor& input, const at::Tensor& mask) {
        at::Tensor scores =
            input.to(at::toOpMathType(input.scalar_type())) * scale;
        scores.masked_fill_(mask.logical_not(),
                            -std::numeric_limits<double>::infinity());
        out.copy_(at::_safe_softmax(scores, -1));
      },
      out, input, mask);
  return out;
}

// [operators.fused.backward] The gradient needs only the output: where the output is zero, the gradient is zero.
at::Tensor scaleMaskSoftmaxBackwardMeta(const at::Tensor& grad,
                                        const at::Tensor& output, double) {
  TORCH_CHECK_VALUE(grad.sym_sizes() == output.sym_sizes() &&
                        grad.scalar_type() == output.scalar_type(),
                    "A gradient of ", grad.sym_sizes(), " and type ",
                    grad.scalar_type(), " does not belong to an output of ",
                    output.sym_sizes(), " and type ", output.scalar_type(),
                    ".");
  return at::empty_symint(output.sym_sizes(), output.options());
}

at::Tensor scaleMaskSoftmaxBackward(const at::Tensor& grad,
                                    const at::Tensor& output, double scale) {
  at::Tensor out = scaleMaskSoftmaxBackwardMeta(grad, output, scale);
  launchRehearsed(
      "scale_mask_softmax_backward",
      [scale](at::Tensor out, const at::Tensor& grad,
              const at::Tensor& output) {
        const auto precise = at::toOpMathType(output.scalar_type());
        out.copy_(at::_softmax_backward_data(grad.to(precise),
                                             output.to(precise), -1, precise) *
                  scale);
      },
      out, grad, output);
  return out;
}

// [operators.fused.register] The kernels are here; those for autograd are in Python. The backward function is an operator too, so that it can have a gradient of its own.
TORCH_LIBRARY_IMPL(openreg, PrivateUse1, m) {
  m.impl("scale_mask_softmax", &scaleMaskSoftmax);
  m.impl("scale_mask_softmax_backward", &scaleMaskSoftmaxBackward);
}

TORCH_LIBRARY_IMPL(openreg, Meta, m) {
  m.impl("scale_mask_softmax", &scaleMaskSoftmaxMeta);
  m.impl("scale_mask_softmax_backward", &scaleMaskSoftmaxBackwardMeta);
}

// [-]
}  // namespace
}  // namespace openreg
