// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/attention/attention.h"

#include <ATen/Context.h>
#include <ATen/native/transformers/attention.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <array>

namespace openreg {

// [operators.attention.choice.heads] PyTorch's checks divide by the number of heads, and leave their width to each backend.
/// Whether there are heads, all as wide as the queries'.
static bool haveOneWidth(const sdp::sdp_params& call) {
  const c10::SymInt width = call.query.sym_size(-1);
  return call.key.sym_size(1) != 0 && width != 0 &&
         width == call.key.sym_size(-1) && width == call.value.sym_size(-1);
}

// [operators.attention.choice.fits] PyTorch's own checks decide which calls the fused kernel takes.
bool fitsKernel(const sdp::sdp_params& call) {
  constexpr bool kQuiet = false;
  constexpr std::array kTypes{at::kFloat, at::kDouble, at::kHalf,
                              at::kBFloat16};
  return sdp::check_nested_tensor(call, kQuiet) &&
         sdp::check_for_dropout(call, kQuiet) &&
         sdp::check_tensor_shapes(call, kQuiet) && haveOneWidth(call) &&
         sdp::check_batch_size_and_num_heads_dense<true>(call, kQuiet) &&
         sdp::check_attn_mask_shape(call, kQuiet) &&
         sdp::check_nonzero_sequence_lengths_dense(call, kQuiet) &&
         sdp::check_tensor_dtype(call, kTypes, kQuiet);
}

// [operators.attention.choice.rules] For vmap and forward mode, PyTorch has rules for the parts of attention, but not for the whole.
/// Whether the call is inside a transform of `torch.func`, or has a dual number
/// among its arguments.
static bool needsRules(const sdp::sdp_params& call) {
  const auto isDual = [](const at::Tensor& tensor) {
    return tensor._fw_grad(/*level=*/0).defined();
  };
  return c10::impl::tls_is_dispatch_key_included(
             c10::DispatchKey::FuncTorchDynamicLayerFrontMode) ||
         isDual(call.query) || isDual(call.key) || isDual(call.value) ||
         (call.attn_mask && isDual(*call.attn_mask));
}

// [operators.attention.choice] PyTorch asks for one of five implementations; the user can turn off any of them.
static int64_t fusedSdpChoice(const at::Tensor& query, const at::Tensor& key,
                              const at::Tensor& value,
                              const std::optional<at::Tensor>& mask,
                              double dropout, bool causal,
                              std::optional<double>, bool grouped) {
  const at::Context& context = at::globalContext();
  at::SDPBackend choice = at::SDPBackend::error;
  const sdp::sdp_params call{query, key, value, mask, dropout, causal, grouped};
  if (context.userEnabledOverrideableSDP() && !needsRules(call) &&
      fitsKernel(call)) {
    choice = at::SDPBackend::overrideable;
  } else if (context.userEnabledMathSDP()) {
    choice = at::SDPBackend::math;
  }
  TORCH_CHECK(choice != at::SDPBackend::error,
              "openreg has no attention that torch.nn.attention.sdpa_kernel "
              "allows here; allow SDPBackend.OVERRIDEABLE, which takes tensors "
              "of four dimensions, or SDPBackend.MATH, which takes all.");
  return static_cast<int64_t>(choice);
}

// [operators.attention.choice.register] Attention itself asks through a stub, and a program can ask through an operator.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_fused_sdp_choice", &fusedSdpChoice);
}

// [-]
}  // namespace openreg

namespace at::native {

// [operators.attention.choice.stub] The macro of a stub must be in the namespace that declares it.
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &openreg::fusedSdpChoice)

// [-]
}  // namespace at::native
