// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace openreg {

// [operators.trace] Which operators a program calls on our devices, counted by the dispatcher.
struct Calls {
  /// By the program, or by a backward pass.
  uint64_t direct = 0;
  /// By other operators.
  uint64_t inner = 0;
};

/// From now on, on all threads, counts the calls of operators that take or
/// return a tensor of ours. Forgets what was counted before.
void startTrace();

/// Stops counting; returns the calls of each operator.
std::map<std::string, Calls> stopTrace();

// [-]
}  // namespace openreg
