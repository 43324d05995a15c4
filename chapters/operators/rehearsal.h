// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace openreg {

// [operators.rehearsal] Types that no kernel takes, told before anything is enqueued.
/// Once for each operator and each combination of types, the CPU's kernel runs
/// on the host, over small tensors of ones.
/// @throws what that kernel throws, if types are the reason: with the types
/// made alike it does not.
void checkTypes(const c10::OperatorHandle& op,
                c10::ArrayRef<c10::IValue> arguments);

// [-]
}  // namespace openreg
