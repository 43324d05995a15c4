// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/errors/refusal.h"
#include "torch_openreg/common/openreg/interface/openreg.h"

#include <atomic>
#include <memory>
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
  /// Clears the error; throws it if the device is lost.
  void reset();
  /// Throws the error, if there is one, as the calling thread's last one.
  void report() const;
  /// What a stream of another device tells that has waited for this one; null
  /// if there is no error. Without memory, something shorter.
  std::shared_ptr<KernelRefusal> forOthers() const noexcept;

 private:
  const int device_;
  mutable std::mutex mutex_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> lost_{false};
  std::string detail_;
  /// Made with the device, for when there is no memory for another.
  const std::shared_ptr<KernelRefusal> short_for_others_ =
      std::make_shared<KernelRefusal>("A device failed.");
};

/// "openreg:0 VERB KERNEL: REASON". Without memory, something shorter.
std::string describeFailure(int device, const char* verb, const char* kernel,
                            const char* reason) noexcept;

// [-]
}  // namespace openreg::hardware
