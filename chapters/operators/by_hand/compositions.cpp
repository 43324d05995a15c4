// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/SDPBackend.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/clamp_min.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [operators.compositions] An operator may be made of others that run on the device already.
void checkNotBool(const at::Tensor& self) {
  TORCH_CHECK(self.scalar_type() != at::kBool,
              "Boolean inputs not supported for relu");
}

/// PyTorch derives nothing for `relu`: it is not a structured operator.
at::Tensor relu(const at::Tensor& self) {
  checkNotBool(self);
  return at::clamp_min(self, 0);
}

at::Tensor& reluInPlace(at::Tensor& self) {
  checkNotBool(self);
  return at::clamp_min_(self, 0);
}

// [operators.compositions.attention] We have no fused attention and no nested tensors: PyTorch shall do without.
/// Unasked, PyTorch would take the CPU's choice, and call a kernel that we have
/// not.
int64_t fusedSdpChoice(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                       const std::optional<at::Tensor>&, double, bool,
                       std::optional<double>, bool) {
  return static_cast<int64_t>(at::SDPBackend::math);
}

/// Whether padding stands at the end of each row, where an encoder may cut it
/// off: what is left would be a nested tensor.
bool nestedTensorFromMaskLeftAligned(const at::Tensor&, const at::Tensor&) {
  return false;
}

// [operators.compositions.register] Autograd sees `relu`, and has a formula for it.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("relu", &relu);
  m.impl("relu_", &reluInPlace);
  m.impl("_fused_sdp_choice", &fusedSdpChoice);
  m.impl("_nested_tensor_from_mask_left_aligned",
         &nestedTensorFromMaskLeftAligned);
}

// [-]
}  // namespace
}  // namespace openreg
