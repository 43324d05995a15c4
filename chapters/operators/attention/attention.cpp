// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/chapters/operators/launch/operands.h"
#include "torch_openreg/chapters/operators/random/random.h"
#include "torch_openreg/common/math/interface/openreg_attention.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_permuted.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace openreg {
namespace {

// [operators.attention.outputs] The output has the query's order of dimensions, as PyTorch's Meta kernel announces it.
at::Tensor outputLike(const at::Tensor& query, int64_t width) {
  if (query.size(3) == width) return at::empty_like(query);
  std::array<int64_t, 4> order{0, 1, 2, 3};
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return query.stride(a) > query.stride(b);
  });
  auto sizes = query.sizes().vec();
  sizes[3] = width;
  return at::empty_permuted(sizes, order, query.options());
}

// [operators.attention.call] Without a scale, the scores are divided by the root of the width.
math::AttentionCall callOf(const at::Tensor& query, double dropout, bool causal,
                           std::optional<double> scale) {
  const double usual = 1 / std::sqrt(static_cast<double>(query.size(-1)));
  return {dropout, causal, scale.value_or(usual)};
}

// [operators.attention] The library checks and enqueues; between the two, the backend allocates and reserves a random number.
/// PyTorch leaves some of the nine results undefined: those that say where
/// nested tensors begin, and the weights for debugging.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt,
           c10::SymInt, at::Tensor, at::Tensor, at::Tensor>
attention(const at::Tensor& query, const at::Tensor& key,
          const at::Tensor& value, const std::optional<at::Tensor>& bias,
          double dropout, bool causal, bool, std::optional<double> scale) {
  const math::AttentionInputs inputs{query, key, value,
                                     bias.value_or(at::Tensor())};
  math::checkAttention(inputs, dropout);
  const at::Tensor output = outputLike(query, value.size(3));
  const auto on_device = output.options();
  const at::Tensor logsumexp =
      at::empty({query.size(0), query.size(1), query.size(2)},
                on_device.dtype(at::kFloat));
  const at::Tensor seed = at::empty({}, on_device.dtype(at::kLong));
  const at::Tensor offset = at::empty_like(seed);
  const c10::DeviceIndex device = commonDevice(
      "_scaled_dot_product_fused_attention", query, key, value, inputs.bias);
  const auto numbers =
      dropout > 0 ? reserve(output, std::nullopt, 1) : math::RandomNumbers{};
  math::attention(callOf(query, dropout, causal, scale), inputs,
                  {output, logsumexp, seed, offset}, numbers,
                  currentNativeStream(device));
  return {output,      logsumexp, {},     {},          query.size(2),
          key.size(2), seed,      offset, at::Tensor()};
}

// [operators.attention.backward] PyTorch announces a gradient for every mask; the kernel computes it only if it is needed.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> attentionBackward(
    const at::Tensor& grad_output, const at::Tensor& query,
    const at::Tensor& key, const at::Tensor& value, const at::Tensor& bias,
    std::array<bool, 4> wanted, const at::Tensor& output,
    const at::Tensor& logsumexp, const at::Tensor&, const at::Tensor&,
    c10::SymInt, c10::SymInt, double dropout, bool causal,
    const at::Tensor& seed, const at::Tensor& offset,
    std::optional<double> scale) {
  const math::AttentionInputs inputs{query, key, value, bias};
  math::checkAttention(inputs, dropout);
  math::AttentionGradients gradients{
      at::empty_like(query), at::empty_like(key), at::empty_like(value), {}};
  at::Tensor grad_bias;
  if (bias.defined()) grad_bias = at::empty_like(bias);
  if (wanted[3]) gradients.bias = grad_bias;
  const c10::DeviceIndex device =
      commonDevice("_scaled_dot_product_fused_attention_backward", query, key,
                   value, bias, grad_output, output, logsumexp, seed, offset);
  math::attentionBackward(callOf(query, dropout, causal, scale), inputs,
                          {output, logsumexp, seed, offset}, grad_output,
                          gradients, currentNativeStream(device));
  return {gradients.query, gradients.key, gradients.value, grad_bias};
}

// [operators.attention.register] PyTorch's formula for the first operator calls the second.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_scaled_dot_product_fused_attention_overrideable", &attention);
  m.impl("_scaled_dot_product_fused_attention_overrideable_backward",
         &attentionBackward);
}

// [-]
}  // namespace
}  // namespace openreg
