// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <c10/util/FunctionRef.h>

#include <algorithm>
#include <vector>

namespace openreg {

// [common.tensors] Tensors stand among an operator's arguments alone or in lists.
/// The arguments of a boxed call; its results take their place.
using Stack = torch::jit::Stack;

/// The indices of an operator; where one is missing, it takes a whole
/// dimension.
using Indices = c10::List<std::optional<at::Tensor>>;

/// All defined tensors among the arguments, including those in lists.
std::vector<at::Tensor> tensorsOf(c10::ArrayRef<c10::IValue> arguments);

/// The tensors of a `Tensor[]` or a `Tensor?[]`, in which a missing one is
/// undefined.
std::vector<at::Tensor> tensorsInList(const c10::IValue& value);

/// A copy of `value` in which `change` has replaced every defined tensor, alone
/// or in a list.
c10::IValue mapTensors(const c10::IValue& value,
                       c10::function_ref<at::Tensor(const at::Tensor&)> change);

// [common.tensors.written] The schema says which arguments an operator writes.
/// Calls `visit(tensor, index)` for each tensor that `op` writes, alone or in a
/// list, with the index of its argument.
template <typename Visit>
void forEachWritten(const c10::OperatorHandle& op,
                    c10::ArrayRef<c10::IValue> arguments, const Visit& visit) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* alias = op.schema().arguments()[i].alias_info();
    if (!alias || !alias->isWrite()) continue;
    if (arguments[i].isTensor()) {
      visit(arguments[i].toTensor(), i);
    } else {
      for (const at::Tensor& tensor : tensorsOf({arguments[i]}))
        visit(tensor, i);
    }
  }
}

/// How many arguments of `op` come before its outputs; all if it has none.
inline size_t inputsOf(const c10::OperatorHandle& op) {
  const auto& arguments = op.schema().arguments();
  return std::find_if(arguments.begin(), arguments.end(),
                      [](const auto& each) { return each.is_out(); }) -
         arguments.begin();
}

/// Whether `op` has outputs among its arguments.
inline bool hasOutputs(const c10::OperatorHandle& op) {
  return inputsOf(op) < op.schema().arguments().size();
}

// [common.tensors.memory] A tensor whose storage was resized to 0 bytes is refused on the host.
/// @throws c10::Error if `tensor` has elements and its storage has no bytes.
inline void checkMemory(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.unsafeGetTensorImpl()->storage_initialized(),
              "The tensor of ", tensor.sizes(), " on ", tensor.device(),
              " has no memory: its storage was resized to 0 bytes. Resize it "
              "before you use the tensor.");
}

// [-]
}  // namespace openreg
