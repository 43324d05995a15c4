// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/checks/checks.h"
#include "torch_openreg/common/math/launch/argument.h"
#include "torch_openreg/common/math/checks/rehearsal.h"

#include <algorithm>
#include <string>

namespace openreg {
namespace {

using Types = std::function<at::ScalarType(at::ScalarType)>;

// [common.check-types.scale] Large tensors are rehearsed only if PyTorch has checked their sizes.
/// Their stand-ins are smaller, so the sizes may not match any more. Structured
/// operators check sizes again; other kernels trust their caller and would read
/// out of bounds.
bool rehearsable(const c10::OperatorHandle& op, bool small, bool structured) {
  return !op.hasTag(at::Tag::nondeterministic_seeded) && (small || structured);
}

int64_t elementsOf(c10::ArrayRef<c10::IValue> values) {
  int64_t elements = 0;
  for (const at::Tensor& tensor : tensorsOf(values)) elements += tensor.numel();
  return elements;
}

// [common.check-types.alternatives] If a call passes with other dtypes, its own dtypes are the reason for its failure.
at::ScalarType defaultOfCategory(at::ScalarType type) {
  if (type == at::kBool) return type;
  if (at::isComplexType(type)) return at::kComplexFloat;
  return at::isIntegralType(type, /*includeBool=*/false) ? at::kLong
                                                         : at::kFloat;
}

at::ScalarType floatUnlessIntegral(at::ScalarType type) {
  return at::isIntegralType(type, /*includeBool=*/true) ? type : at::kFloat;
}

at::ScalarType boolIfIntegral(at::ScalarType type) {
  return at::isIntegralType(type, /*includeBool=*/true) ? at::kBool
                                                        : at::kFloat;
}

template <at::ScalarType all>
at::ScalarType always(at::ScalarType) {
  return all;
}

// [common.check-types.message] An error that is the same in both attempts does not depend on the values.
std::string messageOf(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error& error) {
    return error.msg();
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// Integers are indices, lengths and offsets, for which ones and zeros can both
/// be wrong for the same reason. Outputs do not count, because nobody reads
/// their values.
bool haveNoIntegers(const c10::OperatorHandle& op,
                    c10::ArrayRef<c10::IValue> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (op.schema().arguments()[i].is_out()) continue;
    for (const at::Tensor& tensor : tensorsOf({arguments[i]}))
      if (at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false))
        return false;
  }
  return true;
}

// [common.check-types.masks] The stand-ins of a mask select all elements or none, so other indices may not fit, whatever the dtypes.
bool hasMask(c10::ArrayRef<c10::IValue> arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](const auto& each) {
    if (!each.isOptionalTensorList()) return false;
    const auto indices = tensorsInList(each);
    return std::any_of(indices.begin(), indices.end(), isMask);
  });
}

// [common.check-types.decide] The first attempt uses zeros as integers, because some CPU kernels read and write at an index without looking at it.
/// Whether the operator is known to accept the dtypes.
/// @throws if it is known not to.
bool acceptsTypes(const c10::OperatorHandle& op,
                  c10::ArrayRef<c10::IValue> arguments, bool small) {
  /// Integers get the other one of 0 and 1.
  const auto attempt = [&](int value, const Types& types) {
    return rehearse(op, arguments, [&](const at::Tensor& tensor) {
      const at::ScalarType type = types(tensor.scalar_type());
      const bool is_integer = at::isIntegralType(type, /*includeBool=*/false);
      return makeStandIn(tensor, type, is_integer ? 1 - value : value, small);
    });
  };
  const auto unchanged = [](at::ScalarType type) { return type; };
  const auto first = attempt(1, unchanged);
  const auto error = first ? attempt(0, unchanged) : nullptr;
  if (!error) return true;
  if (isTypeError(first)) std::rethrow_exception(first);
  const bool is_masked = hasMask(arguments);
  const bool is_settled = small ? is_masked || haveNoIntegers(op, arguments)
                                : isA<c10::IndexError>(error) && !is_masked &&
                                      haveNoIntegers(op, arguments);
  const bool is_same = messageOf(first) == messageOf(error);
  if (isTypeError(error) || (is_settled && is_same))
    std::rethrow_exception(error);
  if (is_masked) return false;
  bool always_same = small && is_same;
  for (const auto& types :
       {&floatUnlessIntegral, &defaultOfCategory, &always<at::kFloat>,
        &always<at::kLong>, &boolIfIntegral, &always<at::kBool>,
        &always<at::kComplexFloat>}) {
    for (const int value : {1, 0}) {
      const auto other = attempt(value, types);
      if (!other) std::rethrow_exception(error);  // The dtypes are the reason.
      always_same &= messageOf(other) == messageOf(error);
    }
  }
  if (always_same) std::rethrow_exception(error);
  return false;
}

// [common.check-types.cache] A call is rehearsed once for all sizes, unless every rehearsal failed.
/// If every rehearsal failed, we learned nothing about other sizes, so the
/// sizes become part of the key.
size_t sizedKey(size_t key, c10::ArrayRef<c10::IValue> arguments, bool small) {
  for (const at::Tensor& tensor : tensorsOf(arguments)) {
    for (const int64_t size : tensor.sizes())
      key = followedBy(key, small ? size : std::min<int64_t>(size, 2));
  }
  return key;
}

}  // namespace

void checkTypes(const c10::OperatorHandle& op,
                c10::ArrayRef<c10::IValue> arguments,
                c10::ArrayRef<c10::IValue> results, bool structured) {
  thread_local PassedKeys passed;
  const size_t key = keyOf(op, arguments);
  if (passed.find(key)) return;
  const bool small = isSmall(elementsOf(arguments) + elementsOf(results));
  const size_t sized = sizedKey(key, arguments, small);
  if (passed.find(sized) || !rehearsable(op, small, structured)) return;
  passed.insert(acceptsTypes(op, arguments, small) ? key : sized, {});
}

// [-]
}  // namespace openreg
