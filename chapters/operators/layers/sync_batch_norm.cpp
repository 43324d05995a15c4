// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/var_mean.h>
#include <torch/library.h>

#include <numeric>
#include <vector>

namespace openreg {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using TwoTensors = std::tuple<at::Tensor, at::Tensor>;

// [operators.sync-batch-norm] Each process computes the statistics of its own part; those of 16-bit numbers are kept in float32.
at::Tensor precise(const at::Tensor& tensor) {
  return tensor.to(at::toOpMathType(tensor.scalar_type()));
}

void checkChannels(const char* name, const at::Tensor& input) {
  TORCH_CHECK(input.is_floating_point() && input.dim() >= 2, name,
              " needs (batch, channels, ...) of a floating type; it got ",
              input.scalar_type(), " of ", input.sizes(), ".");
}

/// All dimensions except that of the channels.
std::vector<int64_t> withoutChannels(const at::Tensor& input) {
  std::vector<int64_t> dims(input.dim() - 1);
  std::iota(dims.begin() + 1, dims.end(), 2);
  return dims;
}

/// One number for each channel, in the shape that broadcasts against `input`.
at::Tensor spread(const at::Tensor& values, const at::Tensor& input) {
  std::vector<int64_t> sizes(input.dim(), 1);
  sizes[1] = -1;
  return precise(values).view(sizes);
}

// [operators.sync-batch-norm.statistics] The statistics are the mean and the reciprocal standard deviation of each channel.
TwoTensors batchNormStats(const at::Tensor& input, double eps) {
  checkChannels("batch_norm_stats", input);
  const auto [variance, mean] =
      at::var_mean(precise(input), withoutChannels(input), /*correction=*/0);
  return {mean, (variance + eps).rsqrt_()};
}

// [operators.sync-batch-norm.gather] The variance of all parts is their mean variance plus the variance of their means.
/// Row i of `means` and `inverses` describes `counts[i]` elements of process i.
TwoTensors batchNormGatherStats(const at::Tensor&, const at::Tensor& means,
                                const at::Tensor& inverses,
                                const OptionalTensor& running_mean,
                                const OptionalTensor& running_variance,
                                double momentum, double eps,
                                const at::Tensor& counts) {
  TORCH_CHECK(means.dim() == 2 && inverses.sizes() == means.sizes() &&
                  counts.dim() == 1 && counts.size(0) == means.size(0),
              "batch_norm_gather_stats_with_counts needs statistics of ",
              "(processes, channels) and a count for each process; it got ",
              means.sizes(), ", ", inverses.sizes(), " and ", counts.sizes(),
              ".");
  // In float32, the squares of small differences of large means would be lost.
  const at::Tensor parts = means.to(at::kDouble);
  const at::Tensor count = counts.to(at::kDouble).unsqueeze(1);
  const at::Tensor total = count.sum(), share = count / total;
  const at::Tensor mean = (parts * share).sum(0);
  const at::Tensor variances = inverses.to(at::kDouble).pow(-2) - eps;
  const at::Tensor variance =
      ((variances + (parts - mean).square()) * share).sum(0);
  const auto follow = [&](const OptionalTensor& running,
                          const at::Tensor& latest) {
    if (running && running->defined())
      running->copy_(*running * (1 - momentum) + latest * momentum);
  };
  follow(running_mean, mean);
  follow(running_variance, variance * (total / (total - 1)));
  const auto type = at::toOpMathType(means.scalar_type());
  return {mean.to(type), (variance + eps).rsqrt_().to(type)};
}

// [operators.sync-batch-norm.normalize] Each element takes a subtraction, one multiplication and an addition.
at::Tensor batchNormElement(const at::Tensor& input,
                            const OptionalTensor& weight,
                            const OptionalTensor& bias, const at::Tensor& mean,
                            const at::Tensor& inverse, double) {
  checkChannels("batch_norm_elemt", input);
  at::Tensor factor = spread(inverse, input);
  if (weight && weight->defined()) factor = factor * spread(*weight, input);
  at::Tensor output = (precise(input) - spread(mean, input)).mul_(factor);
  if (bias && bias->defined()) output += spread(*bias, input);
  return output.to(input.scalar_type());
}

// [operators.sync-batch-norm.reduce] Each channel has two sums, which the processes then add up; results that are not requested stay undefined.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>
batchNormBackwardReduce(const at::Tensor& grad, const at::Tensor& input,
                        const at::Tensor& mean, const at::Tensor& inverse,
                        const OptionalTensor& weight, bool for_input,
                        bool for_weight, bool for_bias) {
  checkChannels("batch_norm_backward_reduce", input);
  const auto dims = withoutChannels(input);
  const at::Tensor each = precise(grad), sum = each.sum(dims);
  const at::Tensor product =
      (each * (precise(input) - spread(mean, input))).sum(dims);
  const auto type =
      (weight && weight->defined() ? *weight : mean).scalar_type();
  return {for_input ? sum : at::Tensor(), for_input ? product : at::Tensor(),
          for_weight ? (product * inverse).to(type) : at::Tensor(),
          for_bias ? sum.to(type) : at::Tensor()};
}

// [operators.sync-batch-norm.backward] The statistics depend on every element of every process, so each gradient subtracts its share of both sums.
at::Tensor batchNormBackwardElement(
    const at::Tensor& grad, const at::Tensor& input, const at::Tensor& mean,
    const at::Tensor& inverse, const OptionalTensor& weight,
    const at::Tensor& sum, const at::Tensor& product,
    const at::Tensor& counts) {
  checkChannels("batch_norm_backward_elemt", input);
  const at::Tensor total = counts.sum();
  at::Tensor scale = spread(inverse, input);
  const at::Tensor share = scale.square() * spread(product, input) / total;
  if (weight && weight->defined()) scale = scale * spread(*weight, input);
  // Begins with the input, whose strides the result has.
  at::Tensor result = (precise(input) - spread(mean, input)).mul_(share);
  result.add_(spread(sum, input) / total).sub_(precise(grad)).mul_(-scale);
  return result.to(input.scalar_type());
}

// [operators.sync-batch-norm.register] PyTorch has kernels of these operators for CUDA only, and no Meta kernels.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("batch_norm_stats", &batchNormStats);
  m.impl("batch_norm_gather_stats_with_counts", &batchNormGatherStats);
  m.impl("batch_norm_elemt", &batchNormElement);
  m.impl("batch_norm_backward_reduce", &batchNormBackwardReduce);
  m.impl("batch_norm_backward_elemt", &batchNormBackwardElement);
}

// [-]
}  // namespace
}  // namespace openreg
