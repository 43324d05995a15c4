// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/minimal/layouts.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_nested_tensor_size_native.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [operators.layouts] Sparse, quantized and nested tensors have dispatch keys of their own, and there we refuse what has no kernel.
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

// [operators.layouts.factories] An operator that needs no tensor can be the first one of a program, so it is refused from the beginning.
template <const RefusedLayout& layout>
void refuseFactories(torch::Library& m) {
  for (const char* name : {"_efficientzerotensor", "empty_strided", "from_file",
                           "tril_indices", "triu_indices"}) {
    m.impl(name, refusal<layout>());
  }
}

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) { refuseFactories<kSparse>(m); }
TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  refuseFactories<kSparse>(m);
}
TORCH_LIBRARY_IMPL(aten, QuantizedPrivateUse1, m) {
  refuseFactories<kQuantized>(m);
  m.impl("empty.memory_format", refusal<kQuantized>());
}

// [operators.layouts.nested] Autograd asks a nested tensor for its sizes in a constructor that must not throw.
TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, m) {
  m.impl("_nested_tensor_size", &at::native::_nested_tensor_size);
}

// [operators.layouts.fallbacks] A fallback goes into the table of every operator, so it is registered when the first tensor is made.
template <const RefusedLayout& layout>
void refuseAll(c10::DispatchKey key) {
  // Never destroyed, because that would go through all tables again.
  auto* library =
      new torch::Library(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
  library->fallback(refusal<layout>());
}

}  // namespace

bool registerLayoutRefusals() {
  refuseAll<kSparse>(c10::DispatchKey::SparsePrivateUse1);
  refuseAll<kSparse>(c10::DispatchKey::SparseCsrPrivateUse1);
  refuseAll<kQuantized>(c10::DispatchKey::QuantizedPrivateUse1);
  refuseAll<kNested>(c10::DispatchKey::NestedTensorPrivateUse1);
  return true;
}

// [-]
}  // namespace openreg
