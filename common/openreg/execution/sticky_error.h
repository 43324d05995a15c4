// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"

#include <atomic>
#include <mutex>
#include <string>

namespace openreg::hardware {

// [common.sticky-error] The first failure of a device stays until the device is reset.
class StickyError {
 public:
  explicit StickyError(int device) : device_(device) {}

  bool isSet() const { return failed_.load(std::memory_order_relaxed); }
  bool isLost() const { return lost_; }
  /// Sets the error, unless it is set already. Called by a thread of the
  /// device, where no caller could handle a failure to allocate the message.
  void set(const char* kernel, const char* reason) noexcept;
  /// Marks the device as lost, which no reset undoes.
  void setLost();
  /// Clears the error; returns it if the device is lost.
  orError_t reset();
  /// Returns orSuccess, or makes the error the calling thread's last one.
  orError_t report() const;

 private:
  const int device_;
  mutable std::mutex mutex_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> lost_{false};
  std::string detail_;
};

/// "openreg:0 VERB KERNEL: REASON". Without memory, something shorter.
std::string describeFailure(int device, const char* verb, const char* kernel,
                            const char* reason) noexcept;

// [-]
}  // namespace openreg::hardware
