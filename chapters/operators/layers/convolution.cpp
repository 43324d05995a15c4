// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/launcher.h"

#include <ATen/native/ConvUtils.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <vector>

namespace openreg {
namespace {

using Sizes = at::IntArrayRef;

// [operators.convolution.geometry] The parameters are copied, because a launch outlives the caller's arrays.
struct Geometry {
  std::vector<int64_t> stride, padding, dilation;
  bool transposed;
  std::vector<int64_t> output_padding;
  int64_t groups;

  std::vector<int64_t> outputSize(Sizes input, Sizes weight) const {
    return transposed ? at::native::conv_input_size(input, weight, padding,
                                                    output_padding, stride,
                                                    dilation, groups)
                      : at::native::conv_output_size(input, weight, padding,
                                                     stride, dilation);
  }
};

// [operators.convolution.check] The host refuses what the CPU's kernels would refuse after the launch.
bool isPlain(const Geometry& geometry) {
  return !geometry.transposed &&
         std::all_of(geometry.dilation.begin(), geometry.dilation.end(),
                     [](int64_t distance) { return distance == 1; });
}

bool hasKernel(const Geometry& geometry, at::ScalarType type) {
  switch (type) {
    case at::kByte:
    case at::kChar:
    case at::kShort:
    case at::kInt:
      return isPlain(geometry);
    case at::kLong:
    case at::kHalf:
    case at::kBFloat16:
    case at::kFloat:
    case at::kDouble:
      return true;
    default:
      return at::isComplexType(type);
  }
}

// [operators.convolution.check.numbers] The host refuses numbers that the kernel would refuse.
void checkGeometry(const Geometry& geometry, int64_t dimensions) {
  for (const auto* numbers : {&geometry.stride, &geometry.padding,
                              &geometry.dilation, &geometry.output_padding})
    TORCH_CHECK(std::ssize(*numbers) == dimensions, "A convolution over ",
                dimensions,
                " dimensions needs as many "
                "numbers for each parameter; it got ",
                Sizes(*numbers), ".");
  for (const int64_t step : geometry.stride)
    TORCH_CHECK(step > 0, "non-positive stride is not supported, but got ",
                Sizes(geometry.stride));
  for (size_t i = 0; i < geometry.dilation.size(); ++i) {
    const int64_t dilation = geometry.dilation[i];
    TORCH_CHECK(dilation > 0, "dilation should be greater than zero, but got ",
                Sizes(geometry.dilation));
    const int64_t most = std::max(geometry.stride[i], dilation);
    TORCH_CHECK(
        !geometry.transposed || geometry.output_padding[i] < most,
        "output padding must be smaller than either stride or dilation, but "
        "got ",
        Sizes(geometry.output_padding));
  }
}

// [operators.convolution.check.output] A transposed convolution can be asked for an output of no size.
void checkOutput(const Geometry& geometry, Sizes input, Sizes weight,
                 Sizes output) {
  if (!geometry.transposed) return;
  TORCH_CHECK(weight[1] > 0,
              "A transposed convolution needs a weight with output channels; "
              "it got one of ",
              weight, ".");
  TORCH_CHECK(std::all_of(output.begin() + 2, output.end(),
                          [](int64_t size) { return size > 0; }),
              "Given input size per channel: ", input.slice(2),
              ". Calculated output size per channel: ", output.slice(2),
              ". Output size is too small");
}

// [operators.convolution] PyTorch calls this operator for all convolutions on an out-of-tree device.
at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight,
                       const std::optional<at::Tensor>& bias, Sizes stride,
                       Sizes padding, Sizes dilation, bool transposed,
                       Sizes output_padding, int64_t groups) {
  const Geometry geometry{stride.vec(), padding.vec(),        dilation.vec(),
                          transposed,   output_padding.vec(), groups};
  commonDevice("convolution", {input, weight, bias.value_or(at::Tensor())});
  TORCH_CHECK(weight.dim() == input.dim(), "A convolution of an input with ",
              input.dim(), " dimensions needs a weight with as many; it has ",
              weight.dim(), ".");
  checkGeometry(geometry, input.dim() - 2);
  TORCH_CHECK(input.scalar_type() == weight.scalar_type(), "Input type (",
              input.scalar_type(), ") and weight type (", weight.scalar_type(),
              ") should be the same");
  TORCH_CHECK_NOT_IMPLEMENTED(hasKernel(geometry, input.scalar_type()),
                              "\"convolution\" not implemented for '",
                              input.scalar_type(), "'");
  const auto sizes = geometry.outputSize(input.sizes(), weight.sizes());
  checkOutput(geometry, input.sizes(), weight.sizes(), sizes);
  at::Tensor output = at::empty(sizes, input.options());
  if (output.numel() == 0) return output;
  launchKernel(
      "convolution",
      [geometry](at::Tensor output, const at::Tensor& input,
                 const at::Tensor& weight, const at::Tensor& bias) {
        at::convolution_out(output, input, weight,
                            bias.defined() ? std::optional(bias) : std::nullopt,
                            geometry.stride, geometry.padding,
                            geometry.dilation, geometry.transposed,
                            geometry.output_padding, geometry.groups);
      },
      output, input, weight, bias.value_or(at::Tensor()));
  return output;
}

// [operators.convolution.backward] Only the gradients selected by output_mask are computed; the others stay undefined.
std::tuple<at::Tensor, at::Tensor, at::Tensor> convolutionBackward(
    const at::Tensor& grad_output, const at::Tensor& input,
    const at::Tensor& weight, Sizes stride, Sizes padding, Sizes dilation,
    bool transposed, Sizes output_padding, int64_t groups,
    std::array<bool, 3> output_mask) {
  const Geometry geometry{stride.vec(), padding.vec(),        dilation.vec(),
                          transposed,   output_padding.vec(), groups};
  const int64_t channels = grad_output.size(1);
  const auto like = [&](const at::Tensor& tensor) {
    return at::empty(tensor.sizes(), tensor.options());
  };
  at::Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0]) grad_input = like(input);
  if (output_mask[1]) grad_weight = like(weight);
  if (output_mask[2]) grad_bias = at::empty({channels}, weight.options());
  launchKernel(
      "convolution_backward",
      [geometry, channels, output_mask](
          at::Tensor grad_input, at::Tensor grad_weight, at::Tensor grad_bias,
          const at::Tensor& grad_output, const at::Tensor& input,
          const at::Tensor& weight) {
        auto [a, b, c] = at::convolution_backward(
            grad_output, input, weight, Sizes{channels}, geometry.stride,
            geometry.padding, geometry.dilation, geometry.transposed,
            geometry.output_padding, geometry.groups, output_mask);
        if (output_mask[0]) grad_input.copy_(a);
        if (output_mask[1]) grad_weight.copy_(b);
        if (output_mask[2]) grad_bias.copy_(c);
      },
      grad_input, grad_weight, grad_bias, grad_output, input, weight);
  return {grad_input, grad_weight, grad_bias};
}

// [operators.convolution.register] PyTorch's default kernels for these two only throw an error.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("convolution_overrideable", &convolution);
  m.impl("convolution_backward_overrideable", &convolutionBackward);
}

// [-]
}  // namespace
}  // namespace openreg
