// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace openreg {

// [operators.fallback] What runs on the CPU for want of a kernel, and how often.
/// How often each operator fell back to the CPU since the last reset.
std::map<std::string, uint64_t> fallbackReport();
void resetFallbackReport();

// [-]
}  // namespace openreg
