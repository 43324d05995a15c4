// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/plan/prediction.h"
#include "torch_openreg/common/math/launch/argument.h"
#include "torch_openreg/common/math/checks/recent.h"
#include "torch_openreg/common/math/plan/primitives.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <c10/core/DefaultDtype.h>

#include <mutex>
#include <optional>
#include <string>

namespace openreg {

// [common.prediction.meta] A Meta kernel gets meta tensors, which have no data.
namespace {

at::Tensor metaOf(const at::Tensor& tensor) {
  if (!tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
    return at::Tensor(at::detail::empty_strided_meta(
        tensor.sizes(), tensor.strides(), tensor.scalar_type()));
  }
  // A Meta kernel in Python gets a number, which it can only read on the host.
  at::Tensor number = at::ones({}, tensor.scalar_type());
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  return number;
}

/// For the user's output: with a wrong size, the Meta kernel would warn that it
/// resizes a tensor that the user never sees.
at::Tensor emptyLike(const at::Tensor& out) {
  return at::detail::empty_meta({0}, out.scalar_type());
}

// [common.prediction.run] An announcement is corrected only where it is wrong for every device.
Stack runMetaKernel(const c10::OperatorHandle& op, const Stack& arguments) {
  // A profile shows what the program calls.
  const at::DisableRecordFunctionGuard unrecorded;
  Stack stack;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool out = op.schema().arguments()[i].is_out();
    stack.push_back(mapTensors(arguments[i], out ? &emptyLike : &metaOf));
  }
  accept(op, stack);
  if (const MetaFunction* meta = metaFunction(op)) {
    meta->call(meta->function, stack);
  } else {
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
  }
  correct(op, arguments, stack);
  return stack;
}

// [common.prediction.key] The key of a prediction contains everything that a Meta kernel can see.
class Key {
 public:
  explicit Key(const c10::OperatorHandle& op) {
    bytes_.reserve(512);  // More than most calls need, so it grows once.
    put(op.schema().name().c_str(), op.schema().name().size() + 1);
    put(op.schema().overload_name().c_str(),
        op.schema().overload_name().size() + 1);
    value(c10::typeMetaToScalarType(c10::get_default_dtype()));
    value(at::globalContext().deterministicAlgorithms());
  }

  /// False if the argument is of a kind that cannot be part of a key.
  bool add(const c10::IValue& argument);

  const std::string& bytes() const { return bytes_; }

 private:
  void put(const void* data, size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
  }
  template <class T>
  void value(T value) {
    put(&value, sizeof(value));
  }
  void sizes(at::IntArrayRef sizes) {
    value(sizes.size());
    put(sizes.data(), sizes.size() * sizeof(int64_t));
  }
  void tensor(const at::Tensor& tensor);

  std::string bytes_;
};

// [common.prediction.key.add] A tensor's key has its dtype, sizes and strides, but not its address.
void Key::tensor(const at::Tensor& tensor) {
  value(tensor.defined());
  if (!tensor.defined()) return;
  value(tensor.scalar_type());
  value(tensor.unsafeGetTensorImpl()->is_wrapped_number());
  sizes(tensor.sizes());
  sizes(tensor.strides());
}

// [common.prediction.key.kinds] The bytes of an argument start with its kind, so arguments of different kinds never have the same key.
bool Key::add(const c10::IValue& argument) {
  const size_t kind = bytes_.size();
  value('?');
  const auto is = [&](char name) { bytes_[kind] = name; };
  if (argument.isNone()) {
    is('n');
  } else if (argument.isTensor()) {
    is('t'), tensor(argument.toTensor());
  } else if (argument.isInt()) {
    is('i'), value(argument.toInt());
  } else if (argument.isBool()) {
    is('b'), value(argument.toBool());
  } else if (argument.isDouble()) {
    is('d'), value(argument.toDouble());
  } else if (argument.isIntList()) {
    is('l'), sizes(argument.toDimVector());
  } else if (argument.isBoolList()) {
    is('f'), value(argument.toBoolList().size());
    for (const bool flag : argument.toBoolList()) value(flag);
  } else if (argument.isDoubleList()) {
    is('r'), value(argument.toDoubleVector().size());
    for (const double number : argument.toDoubleVector()) value(number);
  } else if (argument.isString()) {
    const std::string& text = argument.toStringRef();
    is('s'), put(text.c_str(), text.size() + 1);
  } else if (argument.isTensorList() || argument.isOptionalTensorList()) {
    is('v');
    for (const at::Tensor& x : tensorsInList(argument)) tensor(x);
  } else {
    return false;
  }
  return true;
}

}  // namespace

// [common.prediction.out] The Meta kernel of an `.out` form is asked only if it may refuse the output's dtype.
static std::optional<Stack> predictFunctional(const c10::OperatorHandle& op,
                                              const Stack& arguments) {
  const auto functional = math::functionalOf(op);
  if (!functional) return std::nullopt;
  const size_t inputs = functional->schema().arguments().size();
  Stack results = predict(*functional,
                          Stack(arguments.begin(), arguments.begin() + inputs));
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].isTensor() || results[i].toTensor().dtype() !=
                                      arguments[inputs + i].toTensor().dtype())
      return std::nullopt;
  }
  return results;
}

// [common.prediction.ask] The functional form and our own announcements come before the operator's Meta kernel.
static Stack askPyTorch(const c10::OperatorHandle& op, const Stack& arguments) {
  if (auto results = predictFunctional(op, arguments)) return *results;
  Stack announced = announceInCpp(op, arguments);
  return announced.empty() ? runMetaKernel(op, arguments) : announced;
}

// [common.prediction.cache] Predictions are cached, because a Meta kernel in Python takes as long as a hundred launches.
Stack predict(const c10::OperatorHandle& op, const Stack& arguments) {
  static std::mutex mutex;
  static auto& predictions = *new Recent<std::string, Stack>();
  Key key(op);
  for (const c10::IValue& argument : arguments) {
    if (!key.add(argument)) return askPyTorch(op, arguments);
  }
  {
    std::lock_guard lock(mutex);
    if (const Stack* found = predictions.find(key.bytes())) return *found;
  }
  // Without the lock: a Meta kernel in Python waits for the GIL, and so would
  // the end of a tensor that it has made.
  Stack prediction = askPyTorch(op, arguments);
  for (c10::IValue& result : prediction) result = mapTensors(result, &metaOf);
  std::lock_guard lock(mutex);
  return predictions.insert(key.bytes(), std::move(prediction));
}

// [-]
}  // namespace openreg
