// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/fallback/fallback.h"

#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

namespace openreg {
// [operators.refusal] Three kinds of operators would be wrong on the CPU, and schemas and tags identify them; a fourth has schemas that hide it.
static bool returnsView(const c10::OperatorHandle& op) {
  const auto& returns = op.schema().returns();
  return op.hasTag(at::Tag::inplace_view) ||
         std::any_of(returns.begin(), returns.end(), [](const auto& result) {
           return result.alias_info() && !result.alias_info()->isWrite();
         });
}

/// A tensor, or a list or an optional of tensors.
static bool holdsTensor(const c10::Type& type) {
  const auto parts = type.containedTypes();
  return type.kind() == c10::TypeKind::TensorType ||
         std::any_of(parts.begin(), parts.end(),
                     [](const auto& part) { return holdsTensor(*part); });
}

static bool takesTensor(const c10::OperatorHandle& op) {
  const auto& arguments = op.schema().arguments();
  return std::any_of(
      arguments.begin(), arguments.end(),
      [](const auto& argument) { return holdsTensor(*argument.type()); });
}

/// The first two write or return an argument, and the others return a handle to
/// an object of the host.
static bool hidesEffect(const c10::OperatorHandle& op) {
  static const std::unordered_set<std::string_view> names{
      "aten::_saturate_weight_to_fp16", "aten::_reshape_from_tensor",
      "aten::fbgemm_pack_gemm_matrix_fp16",
      "aten::fbgemm_pack_quantized_matrix"};
  return names.contains(op.schema().name());
}

// [operators.refusal.reasons] Each kind has its reason, and an alternative for the user.
std::string fallbackRefusal(const c10::OperatorHandle& op) {
  if (returnsView(op)) {
    return "its result shares memory with an argument, and what comes back "
           "from the CPU does not; use an operator that copies";
  }
  if (!takesTensor(op)) {
    return "it makes a tensor of nothing, which the CPU would do in the host's "
           "memory; make it with device=\"cpu\", and move it";
  }
  if (op.hasTag(at::Tag::nondeterministic_seeded)) {
    return "it draws random numbers, and the CPU's are not those of this "
           "device's seed; draw them on the CPU, and move them";
  }
  if (hidesEffect(op)) {
    return "what it writes or returns cannot be copied back, and its schema "
           "does not say so; call it with CPU tensors";
  }
  return "";
}

// [-]
}  // namespace openreg
