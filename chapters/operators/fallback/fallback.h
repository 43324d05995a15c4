// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <map>
#include <string>

namespace openreg {

// [operators.fallback] What runs on the CPU for want of a kernel, and how often.
/// How often each operator fell back to the CPU since the last reset.
std::map<std::string, uint64_t> fallbackReport();

/// Begins to count anew, and to warn anew.
void resetFallbackReport();

/// Runs `op` on the CPU, between two copies, as a kernel at our key. Counts it;
/// warns, if the policy is to warn.
/// @throws c10::NotImplementedError if the policy forbids it, or it is refused.
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack);

/// Why `op` must not run on the CPU, and what to do instead; empty if it may.
/// Known from its schema and its tags.
std::string fallbackRefusal(const c10::OperatorHandle& op);

// [-]
}  // namespace openreg
