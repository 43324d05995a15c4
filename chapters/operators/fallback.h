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

/// Why `op` must not run on the CPU, and what to do instead; empty if it may.
/// Known from its schema and its tags.
std::string fallbackRefusal(const c10::OperatorHandle& op);

// [-]
}  // namespace openreg
