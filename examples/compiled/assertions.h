// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/examples/compiled/device/arguments.h"

namespace openreg {

// [compiled.assertions] Kernels write into the record, and every call that waits for the device reads it.
/// The record to pass to a kernel, in pinned memory. The call that finds it
/// written returns orErrorKernelRefused, once.
AssertionRecord* assertionRecord();

// [-]
}  // namespace openreg
