// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/checks/rehearsal.h"
#include "torch_openreg/common/math/launch/device_code.h"
#include "torch_openreg/common/math/kernels/kernels.h"
#include "torch_openreg/common/math/launch/argument.h"
#include "torch_openreg/common/tensors.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/record_function.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <unordered_map>

namespace openreg {
namespace {

// [common.rehearsal.isolation] A rehearsal records no gradients, casts nothing, prints no warnings and stays out of profiles.
struct Isolation {
  c10::InferenceMode no_gradients;
  c10::impl::ExcludeDispatchKeyGuard no_casts{c10::autocast_dispatch_keyset};
  SilentWarningHandler silent;
  c10::WarningUtils::WarningHandlerGuard no_warnings{&silent};
  at::DisableRecordFunctionGuard no_records;
};

std::exception_ptr errorOf(const std::function<void()>& body) {
  Isolation isolation;
  try {
    body();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

// [common.rehearsal.number] A number of Python does not decide the dtype of the result, and neither does its stand-in.
bool isNumber(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

/// A Meta kernel could not read the number.
at::Tensor markedLike(const at::Tensor& tensor, at::Tensor stand_in) {
  if (isNumber(tensor) && stand_in.is_cpu())
    stand_in.unsafeGetTensorImpl()->set_wrapped_number(true);
  return stand_in;
}

// [common.rehearsal.run] The rehearsal redispatches the operator, usually with the CPU's key.
}  // namespace

std::exception_ptr rehearse(const c10::OperatorHandle& op,
                            c10::ArrayRef<c10::IValue> arguments,
                            const StandIn& stand_in, c10::DispatchKey key,
                            bool separate) {
  return errorOf([&] {
    Stack stack;
    std::unordered_map<const void*, at::Tensor> known;
    const auto stand_in_of = [&](const at::Tensor& tensor) {
      if (separate) return markedLike(tensor, stand_in(tensor));
      at::Tensor& found = known[tensor.unsafeGetTensorImpl()];
      if (!found.defined()) found = markedLike(tensor, stand_in(tensor));
      return found;
    };
    for (const c10::IValue& argument : arguments)
      stack.push_back(mapTensors(argument, stand_in_of));
    if (key == c10::DispatchKey::CPU) return callCpuKernel(op, stack);
    op.redispatchBoxed(c10::DispatchKeySet(key), &stack);
  });
}

bool passesOnHost(const std::function<void()>& kernel) {
  const auto error = errorOf(kernel);
  if (error && isTypeError(error)) std::rethrow_exception(error);
  return !error;
}

// [common.rehearsal.stand-in] A stand-in for one element has one, and a stand-in for several elements has at least two.
at::Tensor filled(at::Tensor stand_in, int value) {
  try {
    return stand_in.fill_(value);
  } catch (const c10::NotImplementedError&) {
    return stand_in.zero_();
  }
}

at::Tensor makeStandIn(const at::Tensor& tensor, at::ScalarType type, int value,
                       bool full_size) {
  if (full_size && tensor.is_non_overlapping_and_dense())
    return filled(at::empty_strided(tensor.sizes(), tensor.strides(), type),
                  value);
  auto sizes = tensor.sizes().vec();
  // A size of one stays one: kernels may treat a single element differently.
  for (int64_t& size : sizes)
    size = full_size ? size : std::min<int64_t>(size, 2);
  return filled(at::empty(sizes, type), value);
}

// [common.rehearsal.key] The key leaves out sizes and most numbers, which change in a loop.
size_t keyOf(const at::Tensor& tensor) {
  if (!tensor.defined()) return ~size_t{0};
  // An empty tensor may pass where others fail, and so may a single element.
  size_t key = static_cast<size_t>(tensor.scalar_type()) | tensor.dim() << 8 |
               std::min<int64_t>(tensor.numel(), 2) << 16 |
               int64_t{isNumber(tensor)} << 18;
  for (const int64_t size : tensor.sizes()) key = followedBy(key, size == 0);
  return key;
}

// [common.rehearsal.key.number] Of a number, its kind, sign and power of two count, because one that the dtype cannot hold is refused.
static size_t keyOf(const c10::IValue& number) {
  const double value = number.isInt()      ? double(number.toInt())
                       : number.isDouble() ? number.toDouble()
                       : number.isBool()   ? number.toBool()
                                           : 0;
  const int power = std::abs(value) < 1 ? 0 : std::ilogb(value) & 0xffff;
  return number.isNone() | number.isBool() << 1 | number.isInt() << 2 |
         number.isDouble() << 3 | number.isComplexDouble() << 4 |
         (value > 0) << 5 | (value < 0) << 6 | power << 7;
}

// [common.rehearsal.key.call] Dimensions are few, and a wrong one is refused like a wrong dtype.
static bool isDecisive(std::string_view name) {
  return name == "dtype" || name.starts_with("dim");
}

size_t keyOf(const c10::OperatorHandle& op,
             c10::ArrayRef<c10::IValue> arguments) {
  size_t key = std::hash<c10::OperatorHandle>()(op);
  const auto mix = [&](size_t value) { key = followedBy(key, value); };
  mix(at::globalContext().deterministicAlgorithms());
  const auto& names = op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& argument = arguments[i];
    if (argument.isTensor()) {
      mix(keyOf(argument.toTensor()));
    } else if (argument.isTensorList() || argument.isOptionalTensorList()) {
      for (const at::Tensor& each : tensorsInList(argument)) mix(keyOf(each));
    } else if (argument.isInt() && isDecisive(names[i].name())) {
      mix(argument.toInt());
    } else if (argument.isIntList()) {
      const bool is_decisive = isDecisive(names[i].name());
      for (const int64_t each : argument.toIntVector())
        mix(is_decisive ? each : each < 0);
    } else if (argument.isString()) {
      mix(std::hash<std::string>()(argument.toStringRef()));
    } else {
      mix(keyOf(argument));
    }
  }
  return key;
}

// [-]
}  // namespace openreg
