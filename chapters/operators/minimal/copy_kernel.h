// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>

namespace openreg {

// [operators.copy.conversion] The copies need one kernel, behind one function that a vendor replaces.
/// Enqueues the copy of `from` to `to`, both on one device, on the current
/// stream. Converts types, follows strides, resolves bits and broadcasts.
void launchConversion(const at::Tensor& to, const at::Tensor& from);

/// `to.copy_(from)` on the CPU, for kernels and fallbacks that copy there: it
/// negates before it converts. `copy_` itself converts first, though not every
/// dtype has a negative, and from float16 to float32 it forgets to negate.
inline void copyOnCpu(at::Tensor to, const at::Tensor& from) {
  if (from.scalar_type() == to.scalar_type()) return void(to.copy_(from));
  const at::Tensor resolved = from.resolve_neg();
  to.copy_(to.is_neg() ? resolved.to(to.scalar_type()) : resolved);
}

// [-]
}  // namespace openreg
