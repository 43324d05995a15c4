// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/attention/composed.h"
#include "torch_openreg/common/math/random/samplers.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>

namespace openreg::math {
namespace {

// [common.math.attention.flash] The CPU's flash attention needs the elements of a row side by side.
bool supportsFlash(const AttentionCall& call, const AttentionInputs& inputs) {
  return call.dropout == 0 && inputs.query.size(-1) == inputs.value.size(-1) &&
         inputs.query.numel() > 0;
}

at::Tensor withDenseRows(const at::Tensor& tensor) {
  return tensor.stride(-1) == 1 ? tensor : tensor.contiguous();
}

AttentionInputs withDenseRows(const AttentionInputs& inputs) {
  return {withDenseRows(inputs.query), withDenseRows(inputs.key),
          withDenseRows(inputs.value), inputs.bias};
}

std::optional<at::Tensor> optional(const at::Tensor& bias) {
  return bias.defined() ? std::optional(bias) : std::nullopt;
}

std::tuple<at::Tensor, at::Tensor> flash(const AttentionCall& call,
                                         const AttentionInputs& dense) {
  return at::_scaled_dot_product_flash_attention_for_cpu(
      dense.query, dense.key, dense.value, 0, call.causal, optional(dense.bias),
      call.scale);
}

// [common.math.attention.run] On the device, flash attention runs wherever it can.
void run(const AttentionCall& call, const AttentionInputs& inputs,
         const AttentionResults& results) {
  if (!supportsFlash(call, inputs))
    return attentionComposed(call, inputs, results);
  const auto [result, sums] = flash(call, withDenseRows(inputs));
  results.output.copy_(result);
  results.logsumexp.copy_(sums);
}

// [common.math.attention.run-backward] The CPU's kernel computes three gradients at once, but none for a mask.
void runBackward(const AttentionCall& call, const AttentionInputs& inputs,
                 const AttentionResults& results, const at::Tensor& grad_output,
                 const AttentionGradients& gradients) {
  if (!supportsFlash(call, inputs) || gradients.bias.defined())
    return attentionBackwardComposed(call, inputs, results, grad_output,
                                     gradients);
  const AttentionInputs dense = withDenseRows(inputs);
  // What is saved as float32 is not enough for float64.
  const at::Tensor logsumexp = dense.query.scalar_type() == at::kDouble
                                   ? std::get<1>(flash(call, dense))
                                   : results.logsumexp;
  const auto [of_query, of_key, of_value] =
      at::_scaled_dot_product_flash_attention_for_cpu_backward(
          withDenseRows(grad_output), dense.query, dense.key, dense.value,
          withDenseRows(results.output), logsumexp, 0, call.causal,
          optional(dense.bias), call.scale);
  gradients.query.copy_(of_query);
  gradients.key.copy_(of_key);
  gradients.value.copy_(of_value);
}

// [common.math.attention.check] PyTorch checks a call of attention, but not a call of the operator behind it.
constexpr const char* kName = "_scaled_dot_product_fused_attention";

}  // namespace

void checkAttention(const AttentionInputs& inputs, double dropout) {
  const auto& [query, key, value, bias] = inputs;
  const auto fits = [&query = query, &key = key](const at::Tensor& tensor) {
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

// [common.math.attention.launch] The backward pass reads the seed and the offset on the device, so the host does not wait for them.
void attention(const AttentionCall& call, const AttentionInputs& inputs,
               const AttentionResults& results, const RandomNumbers& numbers,
               orStream_t stream) {
  const auto kernel = [call, numbers](
                          at::Tensor output, at::Tensor logsumexp,
                          at::Tensor seed, at::Tensor offset,
                          const at::Tensor& query, const at::Tensor& key,
                          const at::Tensor& value, const at::Tensor& bias) {
    const RandomNumbers from = resolved(numbers);
    seed.fill_(static_cast<int64_t>(from.seed));
    offset.fill_(static_cast<int64_t>(from.offset));
    run(call, {query, key, value, bias}, {output, logsumexp, seed, offset});
  };
  launchViews(kName, stream, kernel, results.output, results.logsumexp,
              results.seed, results.offset, inputs.query, inputs.key,
              inputs.value, inputs.bias);
}

void attentionBackward(const AttentionCall& call, const AttentionInputs& inputs,
                       const AttentionResults& results,
                       const at::Tensor& grad_output,
                       const AttentionGradients& gradients, orStream_t stream) {
  const auto kernel =
      [call](at::Tensor grad_query, at::Tensor grad_key, at::Tensor grad_value,
             at::Tensor grad_bias, const at::Tensor& grad_output,
             const at::Tensor& query, const at::Tensor& key,
             const at::Tensor& value, const at::Tensor& bias,
             const at::Tensor& output, const at::Tensor& logsumexp,
             const at::Tensor& seed, const at::Tensor& offset) {
        runBackward(call, {query, key, value, bias},
                    {output, logsumexp, seed, offset}, grad_output,
                    {grad_query, grad_key, grad_value, grad_bias});
      };
  launchViews("_scaled_dot_product_fused_attention_backward", stream, kernel,
              gradients.query, gradients.key, gradients.value, gradients.bias,
              grad_output, inputs.query, inputs.key, inputs.value, inputs.bias,
              results.output, results.logsumexp, results.seed, results.offset);
}

// [-]
}  // namespace openreg::math
