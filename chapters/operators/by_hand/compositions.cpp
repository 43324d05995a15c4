// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/core/Tensor.h>
#include <ATen/ops/_embedding_bag_backward_native.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/cumprod.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/relu.h>
#include <torch/library.h>

#include <algorithm>

namespace openreg {
namespace {

// [operators.compositions] An operator can be composed of others that already run on the device.
/// @throws the CPU's own error, whose type is not the same in all releases.
void checkNotBool(const at::Tensor& self) {
  if (self.scalar_type() == at::kBool) at::relu(at::empty({1}, at::kBool));
}

/// `clamp_min` is structured, so PyTorch derives its forms; `relu` is not.
at::Tensor relu(const at::Tensor& self) {
  checkNotBool(self);
  return at::clamp_min(self, 0);
}

at::Tensor& reluInPlace(at::Tensor& self) {
  checkNotBool(self);
  return at::clamp_min_(self, 0);
}

// [operators.compositions.encoder] An encoder must not continue with a nested tensor on this device.
/// Whether all padding is at the end of each row, so that an encoder may cut it
/// off. The result would be a nested tensor, so the answer is no.
bool nestedTensorFromMaskLeftAligned(const at::Tensor&, const at::Tensor&) {
  return false;
}

// [operators.compositions.vander] PyTorch's own composition writes in place what its backward pass needs, so it has no gradient.
at::Tensor vander(const at::Tensor& x, std::optional<int64_t> columns,
                  bool increasing) {
  TORCH_CHECK(x.dim() == 1, "x must be a one-dimensional tensor.");
  const int64_t n = columns.value_or(x.size(0));
  TORCH_CHECK(n >= 0, "N must be non-negative.");
  const bool whole = at::isIntegralType(x.scalar_type(), /*includeBool=*/true);
  const at::Tensor column = (whole ? x.to(at::kLong) : x).unsqueeze(1);
  const at::Tensor factors = at::cat(
      {at::ones_like(column), column.expand({-1, std::max<int64_t>(n, 1) - 1})},
      1);
  const at::Tensor powers = factors.cumprod(1).narrow(1, 0, n);
  return increasing ? powers : powers.flip(1);
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) { m.impl("vander", &vander); }

// [operators.compositions.register] Compositions at our key run below autograd, which has already recorded `relu`.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("vander", &vander);
  m.impl("relu", &relu);
  m.impl("relu_", &reluInPlace);
  m.impl("_nested_tensor_from_mask_left_aligned",
         &nestedTensorFromMaskLeftAligned);
  // PyTorch's own composition, which calls the dense form or the sparse one.
  m.impl("_embedding_bag_backward",
         &at::native::_embedding_bag_backward_symint);
}

// [-]
}  // namespace
}  // namespace openreg
