// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/launch/argument.h"

#include <ATen/core/enum_tag.h>

#include <algorithm>

namespace openreg {

// [common.argument.capture] Numbers, sizes and strings are captured by value, because a script may change its list of sizes after the launch.
Argument::Argument(const c10::IValue& value, Access access) {
  if (value.isTensor()) {
    captured_.emplace<View>(value.toTensor(), access);
  } else if (value.isTensorList() || value.isOptionalTensorList()) {
    List list{{}, /*are_optional=*/!value.isTensorList()};
    for (const at::Tensor& tensor : tensorsInList(value))
      list.views.emplace_back(tensor, access);
    captured_ = std::move(list);
  } else {
    const bool is_shared_list = value.isList() && value.use_count() > 1;
    captured_ = is_shared_list ? c10::IValue(value.toList().copy()) : value;
  }
}

// [common.argument.value] On the device, the views become tensors again while the kernel runs.
c10::IValue Argument::value() const {
  if (auto* view = std::get_if<View>(&captured_)) return view->tensor();
  if (auto* plain = std::get_if<c10::IValue>(&captured_)) return *plain;
  const auto& list = std::get<List>(captured_);
  if (!list.are_optional) {
    c10::List<at::Tensor> tensors;
    for (const View& view : list.views) tensors.push_back(view.tensor());
    return tensors;
  }
  Indices tensors;
  for (const View& view : list.views) {
    at::Tensor tensor = view.tensor();
    tensors.push_back(tensor.defined() ? std::optional(tensor) : std::nullopt);
  }
  return tensors;
}

std::optional<at::ScalarType> Argument::dtype() const {
  if (isTensor()) return view().dtype();
  const auto* list = std::get_if<List>(&captured_);
  if (!list || list->views.empty()) return {};
  return list->views[0].dtype();
}

// [common.argument.promotion] A kernel never reads the default dtype, because the program may change it at any moment.
bool isPromoted(const at::Tensor& tensor) {
  return !tensor.defined() ||
         at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true) ||
         tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

bool promotes(const c10::OperatorHandle& op) {
  const std::string& name = op.schema().name();
  return op.hasTag(at::Tag::pointwise) || name == "aten::logsumexp" ||
         name == "aten::where";
}

void promoteAsLaunched(const c10::OperatorHandle& op,
                       torch::jit::Stack& arguments, size_t inputs,
                       std::optional<at::ScalarType> result,
                       at::ScalarType default_dtype) {
  if (!result || c10::toRealValueType(*result) != default_dtype) return;
  for (size_t i = 0; i < inputs; ++i) {
    if (arguments[i].isTensor()) {  // Usually the first is a float.
      if (!isPromoted(arguments[i].toTensor())) return;
    } else {
      const auto tensors = tensorsOf({arguments[i]});
      if (!std::all_of(tensors.begin(), tensors.end(), &isPromoted)) return;
    }
  }
  if (!promotes(op)) return;
  for (size_t i = 0; i < inputs; ++i) {
    if (op.schema().arguments()[i].name() == "condition") continue;
    arguments[i] = mapTensors(arguments[i], [&](const at::Tensor& tensor) {
      return tensor.to(tensor.is_complex() ? *result : default_dtype);
    });
  }
}

// [common.argument.host] Only lists of optional tensors are moved, because in PyTorch these are indices.
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
    Indices moved;
    for (const c10::IValue& each : stack[i].toListRef()) {
      auto index = each.toOptional<at::Tensor>();
      if (index && index->defined() && index->is_cpu())
        index = index->to(stack[first].toTensor().device());
      moved.push_back(std::move(index));
    }
    stack[i] = std::move(moved);
  }
}

// [common.captured.same] PyTorch's kernels treat an output that is their input itself differently from one that shares its memory.
Captured::Captured(c10::ArrayRef<c10::IValue> arguments,
                   c10::function_ref<Access(size_t i)> access) {
  beginAccesses();
  const bool is_wanted = accessesAreWanted();
  arguments_.reserve(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    arguments_.emplace_back(arguments[i],
                            is_wanted ? access(i) : Access::write);
    size_t first = arguments[i].isTensor() ? 0 : i;
    while (first < i &&
           !(arguments[first].isTensor() &&
             arguments[first].toTensor().is_same(arguments[i].toTensor())))
      ++first;
    first_.push_back(static_cast<uint8_t>(first));
  }
}

// [common.captured.values] The kernel gets the arguments in the order of the schema.
torch::jit::Stack Captured::values(size_t count) const {
  torch::jit::Stack values;
  for (size_t i = 0; i < count; ++i) {
    values.push_back(first_[i] < i ? values[first_[i]] : arguments_[i].value());
  }
  return values;
}

// [-]
}  // namespace openreg
