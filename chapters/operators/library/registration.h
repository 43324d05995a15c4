// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <source_location>

namespace openreg {

// [operators.registration] An operator handle is registered directly, because `m.impl` would parse its name.
/// Registers `kernel` for `op` at our key, or at `key`, until the process ends.
void implement(const c10::OperatorHandle& op, c10::KernelFunction kernel,
               c10::DispatchKey key = c10::DispatchKey::PrivateUse1,
               std::source_location where = std::source_location::current());

// [-]
}  // namespace openreg
