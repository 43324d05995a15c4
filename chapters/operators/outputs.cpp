// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/operators/outputs.h"
#include "chapters/operators/argument.h"
#include "chapters/operators/launcher.h"

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>

namespace openreg {

// [operators.outputs.written] The schema says what is written.
namespace {

template <typename Visit>
void forEachWritten(const c10::OperatorHandle& op,
                    c10::ArrayRef<c10::IValue> arguments, const Visit& visit) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* alias = op.schema().arguments()[i].alias_info();
    if (alias && alias->isWrite() && arguments[i].isTensor())
      visit(arguments[i].toTensor());
  }
}

}  // namespace

void checkWritten(const c10::OperatorHandle& op,
                  c10::ArrayRef<c10::IValue> arguments) {
  forEachWritten(op, arguments, [&](const at::Tensor& written) {
    checkWritten(op.schema().name().c_str(), written);
  });
}

// [operators.outputs.overlap] On the device every view is a tensor of its own, so only the host can see this.
namespace {

/// What the CPU deprecates, and does: programs expand a mask and write to it.
bool mayRepeat(const c10::OperatorHandle& op) {
  const std::string& name = op.schema().name();
  return name == "aten::_index_put_impl_" || name == "aten::index_put_" ||
         name == "aten::index_fill_";
}

}  // namespace

void checkOverlap(const c10::OperatorHandle& op,
                  c10::ArrayRef<c10::IValue> arguments) {
  forEachWritten(op, arguments, [&](const at::Tensor& written) {
    if (!mayRepeat(op)) at::assert_no_internal_overlap(written);
    for (const at::Tensor& other : tensorsOf(arguments))
      at::assert_no_partial_overlap(written, other);
  });
}

// [operators.outputs.resize] PyTorch's own function warns; strides are the user's unless the sizes change.
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
