// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/fallback/fallback.h"

#include <ATen/native/CPUFallback.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <torch/library.h>

namespace openreg {
namespace {

using Sizes = at::IntArrayRef;

// [fallback.convolution] PyTorch hands convolutions to a backend by operators that the CPU does not have, so the fallback runs those that it has.
at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight,
                       const std::optional<at::Tensor>& bias, Sizes stride,
                       Sizes padding, Sizes dilation, bool transposed,
                       Sizes output_padding, int64_t groups) {
  return at::native::call_fallback_fn<&fallback, at::_ops::convolution>::call(
      input, weight, bias, stride, padding, dilation, transposed,
      output_padding, groups);
}

// [fallback.convolution.backward] The size of the bias is not an argument here, but follows from the gradient of the output.
std::tuple<at::Tensor, at::Tensor, at::Tensor> convolutionBackward(
    const at::Tensor& grad, const at::Tensor& input, const at::Tensor& weight,
    Sizes stride, Sizes padding, Sizes dilation, bool transposed,
    Sizes output_padding, int64_t groups, std::array<bool, 3> mask) {
  const int64_t channels = grad.size(1);
  return at::native::call_fallback_fn<
      &fallback, at::_ops::convolution_backward>::call(grad, input, weight,
                                                       Sizes(channels), stride,
                                                       padding, dilation,
                                                       transposed,
                                                       output_padding, groups,
                                                       mask);
}

// [fallback.convolution.register] The two operators that PyTorch calls for every convolution.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("convolution_overrideable", &convolution);
  m.impl("convolution_backward_overrideable", &convolutionBackward);
}

// [-]
}  // namespace
}  // namespace openreg
