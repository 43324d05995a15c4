// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/checks/outputs.h"
#include "torch_openreg/chapters/operators/launch/launcher.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>

namespace openreg {

// [operators.outputs.written] The schema says which arguments an operator writes.
void checkWritten(const c10::OperatorHandle& op,
                  c10::ArrayRef<c10::IValue> arguments) {
  forEachWritten(op, arguments, [&](const at::Tensor& written, size_t) {
    checkWritten(op.schema().name().c_str(), written);
  });
}

// [operators.outputs.resize] The user's output keeps its strides unless its sizes change.
void resizeLike(const at::Tensor& out, const at::Tensor& like) {
  if (!at::native::resize_output(out, like.sizes())) return;
  // Strides with gaps need more memory than the elements do.
  const size_t reach =
      at::detail::computeStorageNbytes(like.sizes(), like.strides(), 1);
  out.resize_({static_cast<int64_t>(reach)});
  out.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(),
                                                   like.strides());
}

// [-]
}  // namespace openreg
