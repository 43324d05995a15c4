// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/operators/library/prediction.h"
#include "chapters/operators/launch/argument.h"
#include "chapters/operators/library/correction.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ops/ones.h>
#include <c10/core/DefaultDtype.h>

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace openreg {

using Stack = torch::jit::Stack;

// [operators.prediction.ask] A Meta kernel gets tensors that have everything but data.
namespace {

at::Tensor metaOf(const at::Tensor& tensor) {
  if (!tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
    return at::Tensor(at::detail::empty_strided_meta(
        tensor.sizes(), tensor.strides(), tensor.scalar_type()));
  }
  // A kernel in Python gets a number, which must be on the host to be one.
  at::Tensor number = at::ones({}, tensor.scalar_type());
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  return number;
}

/// For an output of the user's: a wrong size would make the Meta kernel warn of
/// what happens to a tensor that nobody sees.
at::Tensor emptyLike(const at::Tensor& out) {
  return at::detail::empty_meta({0}, out.scalar_type());
}

// [operators.prediction.alerts] PyTorch's switch is one for all threads: we turn it off for four operators only.
struct NoAlerts {
  at::Context& context = at::globalContext();
  const bool warns = context.deterministicAlgorithmsWarnOnly();
  NoAlerts() { context.setDeterministicAlgorithms(false, warns); }
  NoAlerts(const NoAlerts&) = delete;
  ~NoAlerts() { context.setDeterministicAlgorithms(true, warns); }
};

// [operators.prediction.answer] Ask, and correct.
Stack ask(const c10::OperatorHandle& op, const Stack& arguments) {
  std::optional<NoAlerts> no_alerts;
  if (at::globalContext().deterministicAlgorithms() && alertsForCuda(op))
    no_alerts.emplace();
  Stack stack;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool out = op.schema().arguments()[i].is_out();
    stack.push_back(mapTensors(arguments[i], out ? &emptyLike : &metaOf));
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
  correct(op, arguments, stack);
  return stack;
}

// [operators.prediction.key] Everything that a Meta kernel can see, as bytes.
class Key {
 public:
  explicit Key(const c10::OperatorHandle& op) {
    put(op.schema().name().c_str(), op.schema().name().size() + 1);
    put(op.schema().overload_name().c_str(),
        op.schema().overload_name().size() + 1);
    value(c10::typeMetaToScalarType(c10::get_default_dtype()));
    value(at::globalContext().deterministicAlgorithms());
  }

  /// False if it is of a kind that has no bytes.
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

// [operators.prediction.key.add] Of a tensor, all but where its data are.
void Key::tensor(const at::Tensor& tensor) {
  value(tensor.defined());
  if (!tensor.defined()) return;
  value(tensor.scalar_type());
  value(tensor.unsafeGetTensorImpl()->is_wrapped_number());
  sizes(tensor.sizes());
  sizes(tensor.strides());
}

// [operators.prediction.key.kinds] A kind first, so that no two kinds look the same.
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
    is('l'), sizes(argument.toIntVector());
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
    for (const at::Tensor& x : listed(argument)) tensor(x);
  } else {
    return false;
  }
  return true;
}

}  // namespace

// [operators.prediction.remember] What was asked once is remembered: a Meta kernel in Python takes as long as a hundred launches.
Stack predict(const c10::OperatorHandle& op, const Stack& arguments) {
  constexpr size_t kRemembered = 8192;
  static std::mutex mutex;
  static auto& answers = *new std::unordered_map<std::string, Stack>();
  Key key(op);
  for (const c10::IValue& argument : arguments) {
    if (!key.add(argument)) return ask(op, arguments);
  }
  {
    std::lock_guard lock(mutex);
    auto found = answers.find(key.bytes());
    if (found != answers.end()) return found->second;
  }
  // Without the lock: a kernel in Python waits for Python's own.
  Stack answer = ask(op, arguments);
  std::lock_guard lock(mutex);
  if (answers.size() == kRemembered) answers.clear();
  return answers.emplace(key.bytes(), std::move(answer)).first->second;
}

// [-]
}  // namespace openreg
