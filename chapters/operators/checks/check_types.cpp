// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/operators/checks/check_types.h"
#include "chapters/operators/launch/argument.h"
#include "chapters/operators/checks/rehearsal.h"

#include <algorithm>
#include <string>

namespace openreg {
namespace {

using Types = std::function<at::ScalarType(at::ScalarType)>;

// [operators.check-types.scale] Small tensors keep their sizes, others shrink.
/// The library's operators check all sizes first. The kernels of others trust
/// whoever called them, and with sizes that do not fit would read anything.
bool rehearsable(const c10::OperatorHandle& op, bool small, bool structured) {
  return !op.hasTag(at::Tag::nondeterministic_seeded) && (small || structured);
}

bool areSmall(c10::ArrayRef<c10::IValue> arguments) {
  int64_t elements = 0;
  for (const at::Tensor& tensor : tensorsOf(arguments))
    elements += tensor.numel();
  return isSmall(elements);
}

// [operators.check-types.alike] What passes with one of these and fails without, fails for its types.
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

// [operators.check-types.same] Or it fails for what the host gave: then no number of the device's matters.
std::string sentence(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error& error) {
    return error.msg();
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// Whole numbers are indices, lengths, offsets: ones and zeros may both be
/// wrong, for the same reason.
bool allFloating(c10::ArrayRef<c10::IValue> arguments) {
  const auto tensors = tensorsOf(arguments);
  return std::all_of(tensors.begin(), tensors.end(), [](const auto& tensor) {
    return tensor.is_floating_point();
  });
}

// [operators.check-types.judge] Ones are numbers to divide by, zeros are indices of anything.
/// Whether the types are known to be right.
/// @throws if they are known to be wrong.
bool areRight(const c10::OperatorHandle& op,
              c10::ArrayRef<c10::IValue> arguments, bool small) {
  const auto attempt = [&](int value, const Types& types) {
    return rehearse(op, arguments, [&](const at::Tensor& tensor) {
      return standInFor(tensor, types(tensor.scalar_type()), value, small);
    });
  };
  const auto as_it_is = [](at::ScalarType type) { return type; };
  const auto with_ones = attempt(1, as_it_is);
  const auto error = with_ones ? attempt(0, as_it_is) : nullptr;
  if (!error) return true;
  bool wrong = namesReason(error) || (small && allFloating(arguments) &&
                                      sentence(with_ones) == sentence(error));
  for (const auto& types :
       {&floatIfNotWhole, &ofItsKind, &always<at::kFloat>, &always<at::kLong>,
        &withMasks, &always<at::kBool>, &always<at::kComplexFloat>}) {
    wrong = wrong || !attempt(1, types) || !attempt(0, types);
  }
  if (wrong) std::rethrow_exception(error);
  return false;
}

// [operators.check-types.remember] A thread remembers what it has seen, so that nothing is locked.
/// What taught nothing says nothing of stand-ins of other sizes.
size_t sizedKey(size_t key, c10::ArrayRef<c10::IValue> arguments, bool small) {
  for (const at::Tensor& tensor : tensorsOf(arguments)) {
    for (const int64_t size : tensor.sizes())
      key = c10::hash_combine(key, small ? size : std::min<int64_t>(size, 2));
  }
  return key;
}

}  // namespace

void checkTypes(const c10::OperatorHandle& op,
                c10::ArrayRef<c10::IValue> arguments, bool structured) {
  thread_local std::unordered_set<size_t> passed;
  const size_t key = keyOf(op, arguments);
  if (passed.contains(key)) return;
  const bool small = areSmall(arguments);
  const size_t sized = sizedKey(key, arguments, small);
  if (passed.contains(sized) || !rehearsable(op, small, structured)) return;
  passed.insert(areRight(op, arguments, small) ? key : sized);
}

// [-]
}  // namespace openreg
