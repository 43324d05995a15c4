// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/launcher.h"
#include "torch_openreg/chapters/operators/random/random.h"
#include "torch_openreg/common/math/random/samplers.h"
#include "torch_openreg/chapters/operators/attention/composed.h"

#include <ATen/ExpandUtils.h>
#include <ATen/OpMathType.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_permuted.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace openreg {
namespace {

// [operators.attention.flash] The CPU's flash attention needs the elements of a row side by side.
using OptionalTensor = std::optional<at::Tensor>;

at::Tensor withDenseRows(const at::Tensor& tensor) {
  return tensor.stride(-1) == 1 ? tensor : tensor.contiguous();
}

OptionalTensor optional(const at::Tensor& bias) {
  return bias.defined() ? OptionalTensor(bias) : std::nullopt;
}

std::tuple<at::Tensor, at::Tensor> flash(const AttentionCall& call,
                                         const at::Tensor& query,
                                         const at::Tensor& key,
                                         const at::Tensor& value,
                                         const at::Tensor& bias) {
  return at::_scaled_dot_product_flash_attention_for_cpu(
      query, key, value, 0, call.causal, optional(bias), call.scale);
}

// [operators.attention.run] On the device, flash attention runs wherever it can.
void run(const AttentionCall& call, const DropoutState& state,
         const at::Tensor& output, const at::Tensor& logsumexp,
         const at::Tensor& query, const at::Tensor& key,
         const at::Tensor& value, const at::Tensor& bias) {
  if (!call.isFlash(query, value)) {
    attentionComposed(call, state, output, logsumexp, query, key, value, bias);
    return;
  }
  const auto [result, sums] =
      flash(call, withDenseRows(query), withDenseRows(key),
            withDenseRows(value), bias);
  output.copy_(result);
  logsumexp.copy_(sums);
}

// [operators.attention.run-backward] The CPU's kernel computes three gradients at once, but none for a mask.
void runBackward(const AttentionCall& call, const DropoutState& state,
                 const AttentionGradients& gradients,
                 const at::Tensor& grad_output, const at::Tensor& output,
                 at::Tensor logsumexp, const at::Tensor& query,
                 const at::Tensor& key, const at::Tensor& value,
                 const at::Tensor& bias) {
  if (!call.isFlash(query, value) || gradients.bias.defined()) {
    attentionBackwardComposed(call, state, gradients, grad_output, query, key,
                              value, bias);
    return;
  }
  const at::Tensor q = withDenseRows(query), k = withDenseRows(key),
                   v = withDenseRows(value);
  // What is saved as float32 is not enough for float64.
  if (query.scalar_type() == at::kDouble)
    logsumexp = std::get<1>(flash(call, q, k, v, bias));
  const auto [of_query, of_key, of_value] =
      at::_scaled_dot_product_flash_attention_for_cpu_backward(
          withDenseRows(grad_output), q, k, v, withDenseRows(output), logsumexp,
          0, call.causal, optional(bias), call.scale);
  gradients.query.copy_(of_query);
  gradients.key.copy_(of_key);
  gradients.value.copy_(of_value);
}

// [operators.attention.check] PyTorch checks a call of attention, but not a call of the operator behind it.
constexpr const char* kName = "_scaled_dot_product_fused_attention";

void checkAttention(const at::Tensor& query, const at::Tensor& key,
                    const at::Tensor& value, const at::Tensor& bias,
                    double dropout) {
  const auto fits = [&](const at::Tensor& tensor) {
    return tensor.dim() == 4 && tensor.scalar_type() == query.scalar_type() &&
           tensor.size(0) == query.size(0) && tensor.size(1) > 0 &&
           query.size(1) % tensor.size(1) == 0 &&
           tensor.size(1) == key.size(1) && tensor.size(2) == key.size(2) &&
           tensor.size(2) > 0;
  };
  TORCH_CHECK(query.is_floating_point() &&
                  !at::isFloat8Type(query.scalar_type()) && query.dim() == 4 &&
                  fits(key) && fits(value) && key.size(3) == query.size(3),
              kName, " needs (batch, heads, length, width) of one floating ",
              "type, where the heads of keys and values divide the queries'; ",
              "it got queries of ", query.sizes(), ", keys of ", key.sizes(),
              " and values of ", value.sizes(), ".");
  TORCH_CHECK(
      !bias.defined() ||
          at::is_expandable_to(bias.sizes(), {query.size(0), query.size(1),
                                              query.size(2), key.size(2)}),
      kName, " needs a mask that is expandable to the scores; it is of ",
      bias.sizes(), ".");
  TORCH_CHECK(0 <= dropout && dropout <= 1,
              "dropout probability has to be between 0 and 1, but got ",
              dropout);
}

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

AttentionCall callOf(const at::Tensor& query, double dropout, bool causal,
                     std::optional<double> scale) {
  const double usual = 1 / std::sqrt(static_cast<double>(query.size(-1)));
  return {dropout, causal, scale.value_or(usual)};
}

// [operators.attention] Attention takes one launch, however long the sequences are; the scores never leave the kernel.
/// PyTorch leaves some of the nine results undefined: those that say where
/// nested tensors begin, and the weights for debugging.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt,
           c10::SymInt, at::Tensor, at::Tensor, at::Tensor>
attention(const at::Tensor& query, const at::Tensor& key,
          const at::Tensor& value, const OptionalTensor& attn_bias,
          double dropout, bool causal, bool, std::optional<double> scale) {
  const at::Tensor bias = attn_bias.value_or(at::Tensor());
  checkAttention(query, key, value, bias, dropout);
  const at::Tensor output = outputLike(query, value.size(3));
  const auto on_device = output.options();
  const at::Tensor logsumexp =
      at::empty({query.size(0), query.size(1), query.size(2)},
                on_device.dtype(at::kFloat));
  const at::Tensor seed = at::empty({}, on_device.dtype(at::kLong));
  const at::Tensor offset = at::empty_like(seed);
  const math::RandomNumbers range =
      dropout > 0 ? reserve(output, std::nullopt, 1) : math::RandomNumbers{};
  launchKernel(
      kName,
      [call = callOf(query, dropout, causal, scale), range](
          const at::Tensor& output, const at::Tensor& logsumexp,
          const at::Tensor& seed, const at::Tensor& offset,
          const at::Tensor& query, const at::Tensor& key,
          const at::Tensor& value, const at::Tensor& bias) {
        const math::RandomNumbers numbers = math::resolved(range);
        seed.fill_(static_cast<int64_t>(numbers.seed));
        offset.fill_(static_cast<int64_t>(numbers.offset));
        run(call, {seed, offset}, output, logsumexp, query, key, value, bias);
      },
      output, logsumexp, seed, offset, query, key, value, bias);
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
  checkAttention(query, key, value, bias, dropout);
  const at::Tensor grad_query = at::empty_like(query);
  const at::Tensor grad_key = at::empty_like(key);
  const at::Tensor grad_value = at::empty_like(value);
  at::Tensor grad_bias;
  if (bias.defined()) grad_bias = at::empty_like(bias);
  launchKernel(
      "_scaled_dot_product_fused_attention_backward",
      [call = callOf(query, dropout, causal, scale)](
          const at::Tensor& grad_query, const at::Tensor& grad_key,
          const at::Tensor& grad_value, const at::Tensor& grad_bias,
          const at::Tensor& grad_output, const at::Tensor& query,
          const at::Tensor& key, const at::Tensor& value,
          const at::Tensor& bias, const at::Tensor& output,
          const at::Tensor& logsumexp, const at::Tensor& seed,
          const at::Tensor& offset) {
        runBackward(call, {seed, offset},
                    {grad_query, grad_key, grad_value, grad_bias}, grad_output,
                    output, logsumexp, query, key, value, bias);
      },
      grad_query, grad_key, grad_value, wanted[3] ? grad_bias : at::Tensor(),
      grad_output, query, key, value, bias, output, logsumexp, seed, offset);
  return {grad_query, grad_key, grad_value, grad_bias};
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
