// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>

namespace openreg {

// [operators.copy.conversion] The copies need one kernel, behind one function that a vendor replaces.
/// Enqueues the copy of `from` to `to`, both on one device, on the current
/// stream. Converts types, follows strides, resolves bits and broadcasts.
void launchConversion(const at::Tensor& to, const at::Tensor& from);

// [-]
}  // namespace openreg
