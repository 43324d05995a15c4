// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/operators/rehearsal.h"
#include "chapters/operators/argument.h"
#include "chapters/operators/launcher.h"
#include "chapters/operators/library_table.h"
#include "chapters/operators/prediction.h"

#include <ATen/ops/full.h>
#include <ATen/record_function.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/hash.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <unordered_set>

namespace openreg {
namespace {

using Stack = torch::jit::Stack;
using Types = std::function<at::ScalarType(at::ScalarType)>;

// [operators.rehearsal.scale] Small tensors keep their sizes, others shrink.
constexpr int64_t kSmall = 1 << 14;

/// The library's operators check all sizes first. The kernels of others trust
/// whoever called them, and with sizes that do not fit would read anything.
bool rehearsable(const c10::OperatorHandle& op, bool small) {
  return !op.hasTag(at::Tag::nondeterministic_seeded) &&
         (small || library().with_out.contains(op));
}

bool isSmall(c10::ArrayRef<c10::IValue> arguments) {
  int64_t elements = 0;
  for (const at::Tensor& tensor : tensorsOf(arguments))
    elements += tensor.numel();
  return elements <= kSmall;
}

// [operators.rehearsal.attempt] The CPU's kernel, with stand-ins for the tensors.
std::exception_ptr attempt(const c10::OperatorHandle& op,
                           c10::ArrayRef<c10::IValue> arguments, bool small,
                           int value, const Types& types) {
  const auto standIn = [&](const at::Tensor& tensor) {
    auto sizes = tensor.sizes().vec();
    if (!small) std::fill(sizes.begin(), sizes.end(), 1);
    return at::full(sizes, value, at::dtype(types(tensor.scalar_type())));
  };
  try {
    Stack stack;
    for (const c10::IValue& argument : arguments)
      stack.push_back(mapTensors(argument, standIn));
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

// [operators.rehearsal.alike] What passes with one of these and fails without, fails for its types.
at::ScalarType ofItsKind(at::ScalarType type) {
  if (type == at::kBool) return type;
  if (at::isComplexType(type)) return at::kComplexFloat;
  return at::isIntegralType(type, /*includeBool=*/false) ? at::kLong
                                                         : at::kFloat;
}

at::ScalarType floatIfNotWhole(at::ScalarType type) {
  return at::isIntegralType(type, /*includeBool=*/true) ? type : at::kFloat;
}

at::ScalarType withMasks(at::ScalarType type) {
  return at::isIntegralType(type, /*includeBool=*/true) ? at::kBool
                                                        : at::kFloat;
}

template <at::ScalarType all>
at::ScalarType always(at::ScalarType) {
  return all;
}

bool namesTypes(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const c10::NotImplementedError&) {
    return true;  // "..." not implemented for 'Half'
  } catch (...) {
    return false;
  }
}

// [operators.rehearsal.judge] Ones are numbers to divide by, zeros are indices of anything.
/// Null if the types are right, or something else is wrong.
std::exception_ptr judge(const c10::OperatorHandle& op,
                         c10::ArrayRef<c10::IValue> arguments, bool small) {
  const auto fails = [&](const Types& types) {
    auto error = attempt(op, arguments, small, 1, types);
    return error ? attempt(op, arguments, small, 0, types) : error;
  };
  const auto error = fails([](at::ScalarType type) { return type; });
  if (!error || namesTypes(error)) return error;
  for (const auto& types :
       {&floatIfNotWhole, &ofItsKind, &always<at::kFloat>, &always<at::kLong>,
        &withMasks, &always<at::kBool>, &always<at::kComplexFloat>}) {
    if (!fails(types)) return error;
  }
  return nullptr;
}

// [operators.rehearsal.key] Operators, types and dimensions, but no sizes and no numbers.
size_t keyOf(const c10::OperatorHandle& op,
             c10::ArrayRef<c10::IValue> arguments) {
  size_t key = std::hash<c10::OperatorHandle>()(op);
  const auto mix = [&](size_t value) { key = c10::hash_combine(key, value); };
  const auto tensor = [&](const at::Tensor& tensor) {
    mix(tensor.defined() ? static_cast<size_t>(tensor.scalar_type()) : 255);
    mix(tensor.defined() ? tensor.dim() : 0);
  };
  const auto& names = op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& argument = arguments[i];
    if (argument.isTensor()) {
      tensor(argument.toTensor());
    } else if (argument.isTensorList() || argument.isOptionalTensorList()) {
      for (const at::Tensor& each : listed(argument)) tensor(each);
    } else if (argument.isInt() && names[i].name() == "dtype") {
      mix(argument.toInt());
    } else {
      mix(argument.isNone() | argument.isBool() << 1 | argument.isInt() << 2 |
          argument.isDouble() << 3 | argument.isComplexDouble() << 4);
    }
  }
  return key;
}

// [operators.rehearsal.aside] Nobody shall notice: no gradients, no casts, no warnings, no entry in a profile.
struct Aside {
  c10::InferenceMode no_gradients;
  c10::impl::ExcludeDispatchKeyGuard no_casts{c10::autocast_dispatch_keyset};
  Silence silence;
  c10::WarningUtils::WarningHandlerGuard no_warnings{&silence};
  at::DisableRecordFunctionGuard no_records;
};

// [operators.rehearsal.check] A thread remembers what it has seen, so that nothing is locked.
}  // namespace

void checkTypes(const c10::OperatorHandle& op,
                c10::ArrayRef<c10::IValue> arguments) {
  thread_local std::unordered_set<size_t> passed;
  const size_t key = keyOf(op, arguments);
  if (passed.contains(key)) return;
  const bool small = isSmall(arguments);
  if (!rehearsable(op, small)) return;
  {
    Aside aside;
    if (auto error = judge(op, arguments, small)) std::rethrow_exception(error);
  }
  passed.insert(key);
}

// [-]
}  // namespace openreg
