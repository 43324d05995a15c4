// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/compile/library/program.h"

#include "torch_openreg/chapters/device/streams/stream.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/inductor/aoti_torch/utils.h>

namespace openreg {

// [compile.library.boxed] The schema decides which type a value becomes: the 1 of the program is a double where the operator takes a float.
static c10::IValue boxed(const Value& value, const c10::TypePtr& type);

struct Boxing {
  const c10::TypePtr& type;

  c10::IValue operator()(std::monostate) const {
    if (type->kind() == c10::TypeKind::TensorType) return at::Tensor();
    return {};
  }
  c10::IValue operator()(AtenTensorHandle handle) const {
    return *torch::aot_inductor::tensor_handle_to_tensor_pointer(handle);
  }
  c10::IValue operator()(std::complex<double> number) const {
    const c10::complex<double> value(number);
    if (type->kind() == c10::TypeKind::TensorType)
      return at::native::wrapped_scalar_tensor(value);
    return value;
  }
  c10::IValue operator()(const char* text) const { return std::string(text); }
  c10::IValue operator()(DeviceValue device) const {
    return c10::Device(static_cast<c10::DeviceType>(device.type),
                       static_cast<c10::DeviceIndex>(device.index));
  }
  template <class Number>
  c10::IValue operator()(Number number) const {
    if (type->kind() == c10::TypeKind::TensorType)
      return at::native::wrapped_scalar_tensor(number);
    if (type->kind() == c10::TypeKind::FloatType)
      return static_cast<double>(number);
    return number;
  }
  c10::IValue operator()(const Values& values) const {
    const auto element = type->expectRef<c10::ListType>().getElementType();
    c10::impl::GenericList list(element);
    for (const Value& value : values) list.push_back(boxed(value, element));
    return list;
  }
};

// [compile.library.boxed.optional] Without a value, an optional tensor is None, and any other tensor is undefined.
static c10::IValue boxed(const Value& value, const c10::TypePtr& type) {
  const auto optional = type->cast<c10::OptionalType>();
  if (!optional) return std::visit(Boxing{type}, value);
  if (std::holds_alternative<std::monostate>(value)) return {};
  return boxed(value, optional->getElementType());
}

// [compile.library.results] Each tensor among the results becomes a handle that the program owns.
static void giveAway(const c10::IValue& result, AtenTensorHandle* const*& to,
                     AtenTensorHandle* const* end) {
  if (result.isList()) {
    for (const c10::IValue& element : result.toListRef())
      giveAway(element, to, end);
    return;
  }
  if (to == end) return;
  AtenTensorHandle* const handle = *to++;
  if (!handle) return;
  const bool defined = result.isTensor() && result.toTensor().defined();
  *handle = defined ? torch::aot_inductor::new_tensor_handle(
                          at::Tensor(result.toTensor()))
                    : nullptr;
}

// [compile.library.call] An operator of a program takes the way of every call from C++: through the dispatcher.
void callOperator(const char* name, const char* overload,
                  const Values& arguments,
                  std::initializer_list<AtenTensorHandle*> results) {
  const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
  const auto& wanted = op.schema().arguments();
  torch::jit::Stack stack;
  for (size_t i = 0; i < arguments.size(); ++i)
    stack.push_back(boxed(arguments[i], wanted[i].real_type()));
  try {
    op.callBoxed(stack);
  } catch (const c10::Error& error) {
    // The program passes on the message, and nothing else of the exception.
    throw std::runtime_error(error.what_without_backtrace());
  }
  AtenTensorHandle* const* to = results.begin();
  for (const c10::IValue& result : stack) giveAway(result, to, results.end());
}

uintptr_t currentStreamHandle(int32_t device) {
  return reinterpret_cast<uintptr_t>(
      currentNativeStream(static_cast<c10::DeviceIndex>(device)));
}

// [-]
}  // namespace openreg
