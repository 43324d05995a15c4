// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/core/Tensor.h>
#include <ATen/ops/_embedding_bag_backward_native.h>
#include <ATen/ops/relu_native.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [operators.compositions.encoder] An encoder must not continue with a nested tensor on this device.
/// Whether all padding is at the end of each row, so that an encoder may cut it
/// off. The result would be a nested tensor, so the answer is no.
bool nestedTensorFromMaskLeftAligned(const at::Tensor&, const at::Tensor&) {
  return false;
}

// [operators.compositions.register] Compositions at our key run below autograd, which has already recorded `relu`.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_nested_tensor_from_mask_left_aligned",
         &nestedTensorFromMaskLeftAligned);
  // PyTorch's own: `clamp_min`, and the dense form or the sparse one.
  m.impl("relu", &at::native::relu);
  m.impl("relu_", &at::native::relu_);
  m.impl("_embedding_bag_backward",
         &at::native::_embedding_bag_backward_symint);
}

// [-]
}  // namespace
}  // namespace openreg
