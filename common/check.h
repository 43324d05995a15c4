// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "common/openreg/openreg.h"

#include <c10/macros/Macros.h>

namespace openreg {

// [common.check] The one place where the device's errors become PyTorch's.
/// Throws the device's last error as what PyTorch would throw for it.
/// @throws c10::IndexError for a device that does not exist, c10::ValueError
/// for a wrong argument or handle, c10::OutOfMemoryError, c10::AcceleratorError
/// for a kernel that threw, and c10::Error for the rest.
[[noreturn]] void raise(orError_t error);

/// Nothing, unless `error` is one.
inline void check(orError_t error) {
  if (C10_UNLIKELY(error != orSuccess)) raise(error);
}

// [-]
}  // namespace openreg
