// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/ops/clamp_min.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [operators.composed] An operator may be made of others that run on the device already.
/// PyTorch derives nothing for `relu`: it is not a structured operator.
at::Tensor relu(const at::Tensor& self) { return at::clamp_min(self, 0); }

at::Tensor& reluInPlace(at::Tensor& self) { return at::clamp_min_(self, 0); }

// [operators.composed.register] Autograd sees `relu`, and has a formula for it.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("relu", &relu);
  m.impl("relu_", &reluInPlace);
}

// [-]
}  // namespace
}  // namespace openreg
