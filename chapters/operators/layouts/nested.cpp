// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/sparse/sparse.h"

#include <ATen/ops/_nested_view_from_buffer_native.h>

namespace openreg {
namespace {

// [operators.nested.register] A nested tensor is one buffer and tables of sizes on the host, so PyTorch's functions for views and copies serve every device.
TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, m) {
  registerTheirs<c10::DispatchKey::NestedTensorCPU>(
      m,
      "_nested_tensor_strides _nested_tensor_storage_offsets _to_copy "
      "alias chunk clone copy_ detach empty_like is_same_size narrow "
      "select.int split_with_sizes squeeze squeeze.dim transpose.int "
      "unbind.int unsqueeze values view");
}

// [operators.nested.buffer] Gradients of nested tensors are laid over dense buffers, and so are those that are loaded, whose tables are moved with the buffer.
at::Tensor viewFromBuffer(const at::Tensor& buffer, const at::Tensor& sizes,
                          const at::Tensor& strides,
                          const at::Tensor& offsets) {
  return at::native::_nested_view_from_buffer(buffer, sizes.cpu(),
                                              strides.cpu(), offsets.cpu());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_nested_view_from_buffer", &viewFromBuffer);
}

// [-]
}  // namespace
}  // namespace openreg
