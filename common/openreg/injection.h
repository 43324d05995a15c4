// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace openreg::hardware {

// [common.injection] Faults that were ordered, counted down as the program goes on.
class Injection {
 public:
  /// Whether `order` can be read; if so it replaces the earlier one.
  bool order(const char* order);

  /// Whether the fault is due at this allocation, copy or launch.
  bool atAllocation() { return due(allocation_); }
  bool atCopy() { return due(copy_); }
  bool atLaunch() { return due(launch_); }
  /// Whether the device is lost at this command of it.
  bool atCommandOf(int device) {
    return lost_device_ == device && due(lost_after_);
  }

  // [common.injection.state] Nothing is counted unless something was ordered.
 private:
  using Count = std::atomic<int64_t>;

  static bool due(Count& count) {
    return count.load(std::memory_order_relaxed) > 0 && count.fetch_sub(1) == 1;
  }

  Count allocation_{0}, copy_{0}, launch_{0}, lost_after_{0};
  std::atomic<int> lost_device_{-1};
};

/// The process's orders; the first come from OPENREG_INJECT.
Injection& injection();

// [-]
}  // namespace openreg::hardware
