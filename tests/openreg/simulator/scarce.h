// SPDX-License-Identifier: BSD-3-Clause
// The host's memory in this program, which can end when a test says so.
#pragma once

#include <atomic>

namespace scarce {

constexpr int kAll = 1 << 30;
/// How many more allocations succeed. After them one fails, or all do.
extern std::atomic<int> left;
/// Whether only one fails, and whether one has failed.
extern std::atomic<bool> fails_once, failed;

}  // namespace scarce
