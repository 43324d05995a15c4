// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"

#include <c10/macros/Macros.h>

namespace openreg {

// [common.check] Error codes of the driver become exceptions of PyTorch in one place.
/// Throws what the driver's last failed call on this thread returned, with the
/// sentence that the call left, as PyTorch's own type. An operator that refuses
/// without asking the driver uses TORCH_CHECK_NOT_IMPLEMENTED and the like.
/// @throws c10::ValueError for a wrong argument or handle,
/// c10::OutOfMemoryError, c10::NotImplementedError for a function that the
/// driver does not have, c10::AcceleratorError for a device that does not
/// exist, that is lost or on which a kernel threw, and c10::Error for the rest.
[[noreturn]] void raise(orError_t error);

/// Refuses to use the devices in a process that was forked from one that had
/// started them.
/// @throws c10::Error
[[noreturn]] void raiseForked();

/// Throws unless `error` is orSuccess.
inline void check(orError_t error) {
  if (C10_UNLIKELY(error != orSuccess)) raise(error);
}

// [common.check.forked-child] A forked child is refused before it meets a lock that no thread will release.
/// As an object, it can guard a Python function: `call_guard<NotForked>`.
struct NotForked {
  NotForked() {
    if (C10_UNLIKELY(orIsForked())) raiseForked();
  }
};

// [-]
}  // namespace openreg
