// SPDX-License-Identifier: BSD-3-Clause
// The host's memory in this program, which can end when a test says so.
#pragma once

#include <atomic>
#include <thread>

namespace scarce {

constexpr int kAll = 1 << 30;
/// How many more allocations succeed. After them one fails, or all do.
inline std::atomic<int> left{kAll};
/// Whether only one fails, and whether one has failed.
inline std::atomic<bool> fails_once{false}, failed{false};
/// The one thread whose allocations are meant; by default, those of all are.
inline std::atomic<std::thread::id> only{};

}  // namespace scarce
