// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>

namespace openreg {

// [common.differences] Code asks whether PyTorch has a feature, and not which release it is.
/// The question is a template: only there may it name what does not exist.
template <class Type>
constexpr std::optional<Type> bComplex32() {
  if constexpr (requires { Type::BComplex32; }) {
    return Type::BComplex32;
  } else {
    return std::nullopt;
  }
}

/// Since 2.14, pytorch/pytorch#173783: complex numbers of two bfloat16, which
/// the CPU copies, but does not fill. Empty in earlier releases.
inline constexpr auto kBComplex32 = bComplex32<c10::ScalarType>();

// [common.differences.headers] An operator has a header of its own, and the preprocessor can look for it.
/// Since 2.14, pytorch/pytorch#187987: autocast gives an operator float32 on
/// CUDA, without an entry in the lists that other devices take.
#if __has_include(<ATen/ops/linalg_matrix_sqrth.h>)
#define OPENREG_FORALL_FP32_NOT_LISTED(_) _(linalg_matrix_sqrth)
#else
#define OPENREG_FORALL_FP32_NOT_LISTED(_)
#endif

// [-]
}  // namespace openreg
