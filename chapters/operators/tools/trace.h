// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace openreg {

// [operators.trace] The dispatcher counts which operators a program calls on our devices.
struct Calls {
  /// Calls by the program or by a backward pass.
  uint64_t direct = 0;
  /// Calls by other operators.
  uint64_t inner = 0;
};

/// Starts to count, on all threads, the calls of operators that take or return
/// a tensor of ours. Earlier counts are dropped.
void startTrace();

/// Stops counting; returns the calls of each operator.
std::map<std::string, Calls> stopTrace();

// [-]
}  // namespace openreg
