// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/launch/argument.h"

#include <c10/core/DefaultDtype.h>

#include <algorithm>

namespace openreg {

// [common.argument.capture] Numbers, sizes and strings are captured by value, because a script may change its list of sizes after the launch.
Argument::Argument(const c10::IValue& value, Access access) {
  if (value.isTensor()) {
    captured_ = View(value.toTensor(), access);
  } else if (value.isTensorList() || value.isOptionalTensorList()) {
    list_ = value.isTensorList() ? List::tensors : List::optional_tensors;
    std::vector<View> views;
    for (const at::Tensor& tensor : tensorsInList(value))
      views.emplace_back(tensor, access);
    captured_ = std::move(views);
  } else {
    const bool is_shared_list = value.isList() && value.use_count() > 1;
    captured_ = is_shared_list ? c10::IValue(value.toList().copy()) : value;
  }
}

// [common.argument.promotion] In the common case the default dtype is that of the launch, and nothing is converted.
void promoteAsLaunched(torch::jit::Stack& arguments, size_t inputs,
                       at::ScalarType result, at::ScalarType default_dtype) {
  if (default_dtype == c10::get_default_dtype_as_scalartype() ||
      at::isIntegralType(result, /*includeBool=*/true))
    return;
  const auto tensors =
      tensorsOf(c10::ArrayRef<c10::IValue>(arguments.data(), inputs));
  const auto integral = [](const at::Tensor& tensor) {
    return at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
  };
  if (!std::all_of(tensors.begin(), tensors.end(), integral)) return;
  for (size_t i = 0; i < inputs; ++i) {
    arguments[i] = mapTensors(arguments[i], [&](const at::Tensor& tensor) {
      return tensor.to(default_dtype);
    });
  }
}

// [common.argument.host] Only lists of optional tensors are moved, because in PyTorch these are indices.
c10::List<std::optional<at::Tensor>> moveIndices(
    const c10::List<std::optional<at::Tensor>>& indices, c10::Device device) {
  c10::List<std::optional<at::Tensor>> moved;
  for (std::optional<at::Tensor> index : indices) {
    if (index && index->defined() && index->is_cpu()) index = index->to(device);
    moved.push_back(std::move(index));
  }
  return moved;
}

/// TorchScript gives its lists types that are equal to PyTorch's constant one
/// and not the same object, so `isOptionalTensorList` overlooks them.
static bool isIndices(const c10::IValue& value) {
  return value.isList() &&
         *value.toList().elementType() == *c10::OptionalType::ofTensor();
}

void moveIndices(torch::jit::Stack& stack, size_t count) {
  const size_t first = stack.size() - count;
  for (size_t i = first; i < stack.size(); ++i) {
    if (!isIndices(stack[i])) continue;
    c10::List<std::optional<at::Tensor>> indices;
    for (const c10::IValue& index : stack[i].toListRef())
      indices.push_back(index.toOptional<at::Tensor>());
    stack[i] = moveIndices(indices, stack[first].toTensor().device());
  }
}

// [-]
}  // namespace openreg
