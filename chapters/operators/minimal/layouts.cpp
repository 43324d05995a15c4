// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [operators.layouts] Sparse, quantized and nested tensors have dispatch keys of their own, and there we only refuse.
struct RefusedLayout {
  const char* name;
  const char* instead;
};

constexpr RefusedLayout kSparse{"sparse", "keep the tensor dense"};
constexpr RefusedLayout kQuantized{"quantized",
                                   "keep its numbers in a floating type"};
constexpr RefusedLayout kNested{"nested", "make it with layout=torch.jagged"};

template <const RefusedLayout& layout>
void refuse(const c10::OperatorHandle& op, torch::jit::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, c10::toString(op.operator_name()), " has no openreg kernel for ",
      layout.name, " tensors; ", layout.instead, ", or compute on the CPU.");
}

template <const RefusedLayout& layout>
auto refusal() {
  return torch::CppFunction::makeFromBoxedFunction<&refuse<layout>>();
}

// [operators.layouts.register] Operators that PyTorch composes for every layout never reach a fallback, so they work.
TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m) { m.fallback(refusal<kSparse>()); }
TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, m) {
  m.fallback(refusal<kSparse>());
}
TORCH_LIBRARY_IMPL(_, QuantizedPrivateUse1, m) {
  m.fallback(refusal<kQuantized>());
}
TORCH_LIBRARY_IMPL(_, NestedTensorPrivateUse1, m) {
  m.fallback(refusal<kNested>());
}

// [-]
}  // namespace
}  // namespace openreg
