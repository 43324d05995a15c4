// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace tiny {

// [first.fallback.interface] Runs an operator on the CPU, on copies of its arguments, and counts it.
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// [-]
}  // namespace tiny
