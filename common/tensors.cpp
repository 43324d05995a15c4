// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/tensors.h"

namespace openreg {

// [common.tensors.of] An argument can be a tensor, a list of tensors, or a list of optional tensors.
std::vector<at::Tensor> tensorsInList(const c10::IValue& value) {
  if (value.isTensorList()) return value.toTensorVector();
  std::vector<at::Tensor> tensors;
  for (const auto& tensor : value.toOptionalTensorVector()) {
    tensors.push_back(tensor.value_or(at::Tensor()));
  }
  return tensors;
}

std::vector<at::Tensor> tensorsOf(c10::ArrayRef<c10::IValue> arguments) {
  std::vector<at::Tensor> tensors;
  const auto add = [&](const at::Tensor& tensor) {
    if (tensor.defined()) tensors.push_back(tensor);
  };
  for (const c10::IValue& argument : arguments) {
    if (argument.isTensor()) {
      add(argument.toTensor());
    } else if (argument.isTensorList() || argument.isOptionalTensorList()) {
      for (const at::Tensor& tensor : tensorsInList(argument)) add(tensor);
    }
  }
  return tensors;
}

// [common.tensors.map] Replacing every tensor keeps the argument's type, which the schema requires.
c10::IValue mapTensors(
    const c10::IValue& value,
    c10::function_ref<at::Tensor(const at::Tensor&)> change) {
  const auto changed = [&](const at::Tensor& tensor) {
    return tensor.defined() ? change(tensor) : tensor;
  };
  if (value.isTensor()) return changed(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector())
      list.push_back(changed(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    Indices list;
    for (const auto& tensor : value.toOptionalTensorVector())
      list.push_back(tensor ? std::optional(changed(*tensor)) : tensor);
    return list;
  }
  return value;
}

// [-]
}  // namespace openreg
