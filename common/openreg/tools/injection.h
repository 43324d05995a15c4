// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace openreg::hardware {

// [common.injection] Each scheduled fault counts down the calls until it is due.
class Injection {
 public:
  /// Replaces all faults by those of `faults`; false, and no change, if it
  /// cannot be parsed.
  bool configure(const char* faults);

  /// Counts an allocation, copy or launch; whether it must fail.
  bool failsAllocation() { return due(allocation_); }
  bool failsCopy() { return due(copy_); }
  bool failsLaunch() { return due(launch_); }
  /// Counts a kernel or copy of `device`; whether the device is lost at it.
  bool losesDevice(int device) {
    return lost_device_ == device && due(lost_after_);
  }

  // [common.injection.state] Nothing is counted unless a fault is scheduled.
 private:
  using Count = std::atomic<int64_t>;

  static bool due(Count& count) {
    return count.load(std::memory_order_relaxed) > 0 && count.fetch_sub(1) == 1;
  }

  Count allocation_{0}, copy_{0}, launch_{0}, lost_after_{0};
  std::atomic<int> lost_device_{-1};
};

/// The faults of the process, which begin with those of OPENREG_INJECT.
Injection& injection();

// [-]
}  // namespace openreg::hardware
