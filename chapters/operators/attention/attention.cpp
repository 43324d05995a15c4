// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/attention/attention.h"
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/chapters/operators/launch/operands.h"
#include "torch_openreg/common/math/plan/primitives.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <array>

namespace openreg {
namespace {

// [operators.attention.check] PyTorch checks a call of attention, but not a call of the operator behind it.
constexpr const char* kName = "_scaled_dot_product_fused_attention";

void checkCall(const sdp::sdp_params& call) {
  const auto& [query, key, value, mask, dropout, causal, grouped] = call;
  TORCH_CHECK(
      fitsKernel(call) && key.size(2) == value.size(2), kName,
      " needs (batch, heads, length, width) of one floating type, where the "
      "heads of keys and values divide the queries'; a mask that is expandable "
      "to the scores and needs no gradient; and no dropout. It got queries of ",
      query.sizes(), ", keys of ", key.sizes(), ", values of ", value.sizes(),
      ", ", mask ? c10::str("a mask of ", mask->sizes()) : "no mask",
      " and a dropout of ", dropout, ".");
}

// [operators.attention.enqueue] The library's kernel is a primitive like others, but the results have the layout that PyTorch announces for this operator.
/// Enqueues the primitive of this name on the current stream of `device`.
void enqueue(const char* name, c10::DeviceIndex device,
             torch::jit::Stack arguments, const torch::jit::Stack& outputs) {
  const auto& primitive = math::primitiveOf(math::findOperator(name).value());
  const orStream_t stream = currentNativeStream(device);
  math::Plan(primitive, std::move(arguments), stream).enqueue(outputs, stream);
}

/// The kernel needs the elements of a row side by side.
at::Tensor withDenseRows(const at::Tensor& tensor) {
  return tensor.stride(-1) == 1 ? tensor : tensor.contiguous();
}

void forward(c10::DeviceIndex device, const sdp::sdp_params& call,
             std::optional<double> scale, const at::Tensor& output,
             const at::Tensor& logsumexp) {
  enqueue("_scaled_dot_product_flash_attention_for_cpu", device,
          {withDenseRows(call.query), withDenseRows(call.key),
           withDenseRows(call.value), call.dropout, call.is_causal,
           call.attn_mask, scale},
          {output, logsumexp});
}

// [operators.attention] Check, allocate, enqueue. PyTorch leaves some of the nine results undefined.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt,
           c10::SymInt, at::Tensor, at::Tensor, at::Tensor>
attention(const at::Tensor& query, const at::Tensor& key,
          const at::Tensor& value, const std::optional<at::Tensor>& bias,
          double dropout, bool causal, bool, std::optional<double> scale) {
  const c10::DeviceIndex device =
      commonDevice(kName, query, key, value, bias.value_or(at::Tensor()));
  const sdp::sdp_params call{
      query, key, value, bias, dropout, causal, /*enable_gqa=*/true};
  checkCall(call);
  const at::Tensor output = at::empty_like(query);
  const at::Tensor logsumexp =
      at::empty({query.size(0), query.size(1), query.size(2)},
                query.options().dtype(at::kFloat));
  forward(device, call, scale, output, logsumexp);
  // Where random numbers begin, which a kernel with dropout would write here.
  const at::Tensor seed = at::empty({}, query.options().dtype(at::kLong));
  return {output,
          logsumexp,
          {},
          {},
          query.size(2),
          key.size(2),
          seed,
          at::empty_like(seed),
          {}};
}

// [operators.attention.backward] PyTorch announces a gradient for every mask, and needs it for none that the choice lets pass.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> attentionBackward(
    const at::Tensor& grad_output, const at::Tensor& query,
    const at::Tensor& key, const at::Tensor& value, const at::Tensor& bias,
    std::array<bool, 4> wanted, const at::Tensor& output,
    const at::Tensor& logsumexp, const at::Tensor&, const at::Tensor&,
    c10::SymInt, c10::SymInt, double dropout, bool causal, const at::Tensor&,
    const at::Tensor&, std::optional<double> scale) {
  if (!grad_output.defined()) return {};
  const c10::DeviceIndex device =
      commonDevice("_scaled_dot_product_fused_attention_backward", query, key,
                   value, bias, grad_output, output, logsumexp);
  const auto mask = bias.defined() ? std::optional(bias) : std::nullopt;
  TORCH_CHECK(!mask || !wanted[3], kName, " has no gradient for its mask.");
  const sdp::sdp_params call{
      query, key, value, mask, dropout, causal, /*enable_gqa=*/true};
  checkCall(call);
  at::Tensor sums = logsumexp;
  // What is saved as float32 is not enough for float64.
  if (query.scalar_type() == at::kDouble) {
    sums = at::empty_like(logsumexp, at::kDouble);
    forward(device, call, scale, at::empty_like(query), sums);
  }
  const at::Tensor of_query = at::empty_like(query),
                   of_key = at::empty_like(key),
                   of_value = at::empty_like(value);
  enqueue("_scaled_dot_product_flash_attention_for_cpu_backward", device,
          {withDenseRows(grad_output), withDenseRows(query), withDenseRows(key),
           withDenseRows(value), withDenseRows(output), sums, dropout, causal,
           mask, scale},
          {of_query, of_key, of_value});
  return {of_query, of_key, of_value, mask ? at::empty_like(bias) : bias};
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
