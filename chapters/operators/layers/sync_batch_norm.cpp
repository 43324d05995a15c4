// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/launcher.h"

#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
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

/// An uninitialized number for each channel of `like`.
at::Tensor perChannel(const char* name, const at::Tensor& like) {
  checkChannels(name, like);
  const auto dtype = at::toOpMathType(like.scalar_type());
  return at::empty({like.size(1)}, like.options().dtype(dtype));
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
  const at::Tensor mean = perChannel("batch_norm_stats", input);
  const at::Tensor inverse = at::empty_like(mean);
  launchKernel(
      "batch_norm_stats",
      [eps](at::Tensor mean, at::Tensor inverse, const at::Tensor& input) {
        const auto [variance, average] = at::var_mean(
            precise(input), withoutChannels(input), /*correction=*/0);
        mean.copy_(average);
        inverse.copy_((variance + eps).rsqrt_());
      },
      mean, inverse, input);
  return {mean, inverse};
}

// [operators.sync-batch-norm.gather] The variance of all parts is their mean variance plus the variance of their means.
/// Row i of `means` and `inverses` describes `counts[i]` elements.
void gather(double momentum, double eps, at::Tensor mean, at::Tensor inverse,
            at::Tensor running_mean, at::Tensor running_variance,
            const at::Tensor& means, const at::Tensor& inverses,
            const at::Tensor& counts) {
  // A difference of squares would lose what float64 keeps.
  const at::Tensor parts = means.to(at::kDouble);
  const at::Tensor count = counts.to(at::kDouble).unsqueeze(1);
  const double total = count.sum().item<double>();
  const at::Tensor share = count / total;
  const at::Tensor average = (parts * share).sum(0);
  const at::Tensor variances = inverses.to(at::kDouble).pow(-2) - eps;
  const at::Tensor variance =
      ((variances + (parts - average).square()) * share).sum(0);
  mean.copy_(average);
  inverse.copy_((variance + eps).rsqrt());
  const auto follow = [&](at::Tensor& running, const at::Tensor& latest) {
    if (running.defined())
      running.copy_(running * (1 - momentum) + latest * momentum);
  };
  follow(running_mean, average);
  follow(running_variance, variance * (total / (total - 1)));
}

// [operators.sync-batch-norm.combine] The gathered statistics have two dimensions, with one row for each process.
TwoTensors batchNormGatherStats(const at::Tensor&, const at::Tensor& means,
                                const at::Tensor& inverses,
                                const OptionalTensor& running_mean,
                                const OptionalTensor& running_variance,
                                double momentum, double eps,
                                const at::Tensor& counts) {
  constexpr const char* kName = "batch_norm_gather_stats_with_counts";
  TORCH_CHECK(means.dim() == 2 && inverses.sizes() == means.sizes() &&
                  counts.dim() == 1 && counts.size(0) == means.size(0),
              kName, " needs statistics of (processes, channels) and a count ",
              "for each process; it got ", means.sizes(), ", ",
              inverses.sizes(), " and ", counts.sizes(), ".");
  const at::Tensor mean = perChannel(kName, means);
  const at::Tensor inverse = at::empty_like(mean);
  launchKernel(
      kName,
      [momentum, eps](auto&&... tensors) { gather(momentum, eps, tensors...); },
      mean, inverse, running_mean.value_or(at::Tensor()),
      running_variance.value_or(at::Tensor()), means, inverses, counts);
  return {mean, inverse};
}

// [operators.sync-batch-norm.normalize] Normalizing takes one multiplication and one addition for each element.
at::Tensor batchNormElement(const at::Tensor& input,
                            const OptionalTensor& weight,
                            const OptionalTensor& bias, const at::Tensor& mean,
                            const at::Tensor& inverse, double) {
  checkChannels("batch_norm_elemt", input);
  const at::Tensor output = at::empty_like(input);
  launchKernel(
      "batch_norm_elemt",
      [](at::Tensor output, const at::Tensor& input, const at::Tensor& weight,
         const at::Tensor& bias, const at::Tensor& mean,
         const at::Tensor& inverse) {
        at::Tensor factor = spread(inverse, input);
        if (weight.defined()) factor = factor * spread(weight, input);
        at::Tensor result = (precise(input) - spread(mean, input)) * factor;
        if (bias.defined()) result += spread(bias, input);
        output.copy_(result);
      },
      output, input, weight.value_or(at::Tensor()), bias.value_or(at::Tensor()),
      mean, inverse);
  return output;
}

// [operators.sync-batch-norm.reduce] Each channel has two sums, which the processes then add up; results that are not requested stay undefined.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>
batchNormBackwardReduce(const at::Tensor& grad, const at::Tensor& input,
                        const at::Tensor& mean, const at::Tensor& inverse,
                        const OptionalTensor& weight, bool for_input,
                        bool for_weight, bool for_bias) {
  checkChannels("batch_norm_backward_reduce", input);
  at::Tensor sum, product, grad_weight, grad_bias;
  if (for_input) sum = at::empty_like(mean), product = at::empty_like(mean);
  const at::Tensor& like = weight && weight->defined() ? *weight : mean;
  if (for_weight) grad_weight = at::empty_like(like);
  if (for_bias) grad_bias = at::empty_like(like);
  launchKernel(
      "batch_norm_backward_reduce",
      [](at::Tensor sum, at::Tensor product, at::Tensor grad_weight,
         at::Tensor grad_bias, const at::Tensor& grad, const at::Tensor& input,
         const at::Tensor& mean, const at::Tensor& inverse) {
        const auto dims = withoutChannels(input);
        const at::Tensor each = precise(grad);
        const at::Tensor of_grad = each.sum(dims);
        const at::Tensor of_product =
            (each * (precise(input) - spread(mean, input))).sum(dims);
        if (sum.defined()) sum.copy_(of_grad), product.copy_(of_product);
        if (grad_weight.defined()) grad_weight.copy_(of_product * inverse);
        if (grad_bias.defined()) grad_bias.copy_(of_grad);
      },
      sum, product, grad_weight, grad_bias, grad, input, mean, inverse);
  return {sum, product, grad_weight, grad_bias};
}

// [operators.sync-batch-norm.backward] The statistics depend on every element of every process, so each gradient subtracts its share of both sums.
at::Tensor batchNormBackwardElement(
    const at::Tensor& grad, const at::Tensor& input, const at::Tensor& mean,
    const at::Tensor& inverse, const OptionalTensor& weight,
    const at::Tensor& sum, const at::Tensor& product,
    const at::Tensor& counts) {
  checkChannels("batch_norm_backward_elemt", input);
  const at::Tensor grad_input = at::empty_like(input);
  launchKernel(
      "batch_norm_backward_elemt",
      [](at::Tensor grad_input, const at::Tensor& grad, const at::Tensor& input,
         const at::Tensor& mean, const at::Tensor& inverse,
         const at::Tensor& weight, const at::Tensor& sum,
         const at::Tensor& product, const at::Tensor& counts) {
        const double total = counts.sum().item().toDouble();
        const at::Tensor scale = spread(inverse, input);
        const at::Tensor share =
            scale.square() * spread(product, input) / total;
        at::Tensor result = precise(grad) - spread(sum, input) / total -
                            (precise(input) - spread(mean, input)) * share;
        result *= weight.defined() ? scale * spread(weight, input) : scale;
        grad_input.copy_(result);
      },
      grad_input, grad, input, mean, inverse, weight.value_or(at::Tensor()),
      sum, product, counts);
  return grad_input;
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
