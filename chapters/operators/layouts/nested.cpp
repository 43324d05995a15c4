// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/NativeFunctions.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [operators.nested.register] A nested tensor is one buffer and tables of sizes on the host, so PyTorch's functions for views and copies serve every device.
TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, m) {
  m.impl("_nested_tensor_strides", &at::native::_nested_tensor_strides);
  m.impl("_nested_tensor_storage_offsets",
         &at::native::_nested_tensor_storage_offsets);
  m.impl("_to_copy", &at::native::_to_copy_nested);
  m.impl("alias", &at::native::alias_nested);
  m.impl("chunk", &at::native::chunk_nested_tensor);
  m.impl("clone", &at::native::clone_nested);
  m.impl("copy_", &at::native::copy_nested_);
  m.impl("detach", &at::native::detach);
  m.impl("empty_like", &at::native::empty_like_nested);
  m.impl("is_same_size", &at::native::nested_is_same_size);
  m.impl("narrow", &at::native::narrow_nested_symint);
  m.impl("select.int", &at::native::select_nested);
  m.impl("split_with_sizes", &at::native::split_with_sizes_nested);
  m.impl("squeeze", &at::native::squeeze_nested);
  m.impl("squeeze.dim", static_cast<at::Tensor (*)(const at::Tensor&, int64_t)>(
                            &at::native::squeeze_dim_nested));
  m.impl("transpose.int", &at::native::transpose_nested);
  m.impl("unbind.int", &at::native::NestedTensor_unbind);
  m.impl("unsqueeze", &at::native::unsqueeze_nested);
  m.impl("values", &at::native::values_nested);
  m.impl("view", &at::native::view_nested);
}

// [operators.nested.buffer] Gradients of nested tensors are laid over dense buffers.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_nested_view_from_buffer", &at::native::_nested_view_from_buffer);
}

// [-]
}  // namespace
}  // namespace openreg
