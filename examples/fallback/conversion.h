// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>

namespace openreg {

// [fallback.conversion.declared] A kernel of one's own passes on what it does not handle.
/// Copies like `launchConversion`, on the CPU and after a wait for the device,
/// and counts `aten::_copy_from` as a fallback.
void convertByFallback(const at::Tensor& to, const at::Tensor& from);

// [-]
}  // namespace openreg
