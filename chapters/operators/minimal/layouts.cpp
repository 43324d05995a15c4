// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/minimal/layouts.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_nested_tensor_size_native.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [operators.layouts] Sparse, quantized and nested tensors have dispatch keys of their own, and there we refuse what has no kernel.
void refuse(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
            torch::jit::Stack*) {
  const c10::DispatchKey layout = keys.highestFunctionalityKey();
  const char* refused = "sparse tensors; keep the tensor dense";
  if (layout == c10::DispatchKey::Quantized)
    refused = "quantized tensors; keep its numbers in a floating type";
  if (layout == c10::DispatchKey::NestedTensor)
    refused = "nested tensors; make it with layout=torch.jagged";
  TORCH_CHECK_NOT_IMPLEMENTED(false, c10::toString(op.operator_name()),
                              " has no openreg kernel for ", refused,
                              ", or compute on the CPU.");
}

torch::CppFunction refusal() {
  return torch::CppFunction::makeFromBoxedFunction<&refuse>();
}

// [operators.layouts.factories] An operator that needs no tensor can be the first one of a program, so it is refused from the beginning.
void refuseFactories(torch::Library& m) {
  for (const char* name : {"_efficientzerotensor", "empty_strided", "from_file",
                           "tril_indices", "triu_indices"}) {
    m.impl(name, refusal());
  }
}

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) { refuseFactories(m); }
TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) { refuseFactories(m); }
TORCH_LIBRARY_IMPL(aten, QuantizedPrivateUse1, m) {
  refuseFactories(m);
  m.impl("empty.memory_format", refusal());
}

// [operators.layouts.nested] Autograd asks a nested tensor for its sizes in a constructor that must not throw.
TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, m) {
  m.impl("_nested_tensor_size", &at::native::_nested_tensor_size);
}

// [operators.layouts.fallbacks] A fallback goes into the table of every operator, so it is registered when the first tensor is made.
void refuseAll(c10::DispatchKey key) {
  // Never destroyed, because that would go through all tables again.
  auto* library =
      new torch::Library(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
  library->fallback(refusal());
}

}  // namespace

bool registerLayoutRefusals() {
  for (const auto key : {c10::DispatchKey::SparsePrivateUse1,
                         c10::DispatchKey::SparseCsrPrivateUse1,
                         c10::DispatchKey::QuantizedPrivateUse1,
                         c10::DispatchKey::NestedTensorPrivateUse1})
    refuseAll(key);
  return true;
}

// [-]
}  // namespace openreg
