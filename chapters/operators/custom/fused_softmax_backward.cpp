// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/launcher.h"
#include "torch_openreg/chapters/operators/custom/rows.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <vector>

namespace openreg {
namespace {

// [operators.fused.backward] The gradient needs only the output: where the output is zero, the gradient is zero.
/// Both loops below need each number, so it is read and converted once.
template <class T, class Number>
void read(Number* to, const Row<T>& row, int64_t width) {
  if (!row.isDense()) {
    for (int64_t i = 0; i < width; ++i) to[i] = row[i];
    return;
  }
  const T* from = row.data();
#pragma omp simd
  for (int64_t i = 0; i < width; ++i) to[i] = from[i];
}

template <class T>
void softmaxBackwardInto(at::Tensor& out, const at::Tensor& grad,
                         const at::Tensor& output, double factor) {
  using Number = at::opmath_type<T>;
  const auto scale = static_cast<Number>(factor);
  const int64_t width = output.size(-1);
  forEachBlock(output, [&](int64_t begin, int64_t end) {
    std::vector<Number> numbers(2 * width);
    Number *g = numbers.data(), *y = g + width;
    T* to = out.data_ptr<T>() + begin * width;
    for (int64_t row = begin; row < end; ++row, to += width) {
      read(g, Row<T>(grad, row), width);
      read(y, Row<T>(output, row), width);
      Number along = 0;
#pragma omp simd reduction(+ : along)
      for (int64_t i = 0; i < width; ++i) along += g[i] * y[i];
#pragma omp simd
      for (int64_t i = 0; i < width; ++i) to[i] = scale * y[i] * (g[i] - along);
    }
  });
}

// [operators.fused.host-backward] Autograd may pass a gradient with any strides.
at::Tensor scaleMaskSoftmaxBackward(const at::Tensor& grad,
                                    const at::Tensor& output, double scale) {
  TORCH_CHECK_VALUE(grad.sizes() == output.sizes() &&
                        grad.scalar_type() == output.scalar_type(),
                    "A gradient of ", grad.sizes(), " and type ",
                    grad.scalar_type(), " does not belong to an output of ",
                    output.sizes(), " and type ", output.scalar_type(), ".");
  at::Tensor out = at::empty(output.sizes(), output.options());
  launchRehearsed(
      "scale_mask_softmax_backward",
      [scale](at::Tensor out, const at::Tensor& grad,
              const at::Tensor& output) {
        AT_DISPATCH_FLOATING_TYPES_AND2(
            at::kHalf, at::kBFloat16, output.scalar_type(), "softmax_backward",
            [&] { softmaxBackwardInto<scalar_t>(out, grad, output, scale); });
      },
      out, grad, output);
  return out;
}

// [operators.fused.register-backward] The backward function is an operator too, so that it can have a gradient of its own.
TORCH_LIBRARY_IMPL(openreg, PrivateUse1, m) {
  m.impl("scale_mask_softmax_backward", &scaleMaskSoftmaxBackward);
}

// [-]
}  // namespace
}  // namespace openreg
