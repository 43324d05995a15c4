// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/errors/sticky_error.h"

#include "torch_openreg/common/openreg/core/failure.h"

#include <new>
#include <utility>

namespace openreg::hardware {

// [common.sticky-error.set] Later failures are dropped, because they mostly follow from the first.
std::string describeFailure(int device, const char* verb, const char* kernel,
                            const char* reason) noexcept try {
  return "openreg:" + std::to_string(device) + " " + verb + " " + kernel +
         ": " + reason;
} catch (const std::bad_alloc&) {
  return "A kernel threw.";  // Short enough to need no memory.
}

void StickyError::set(const char* kernel, const char* reason) noexcept {
  std::lock_guard lock(mutex_);
  if (failed_) return;
  detail_ = describeFailure(device_, "stopped in", kernel, reason);
  failed_ = true;
}

void StickyError::setLost() {
  std::lock_guard lock(mutex_);
  detail_ = "openreg:" + std::to_string(device_) + " is lost.";
  lost_ = failed_ = true;
}

// [common.sticky-error.reset] A reset clears a failure, but does not bring back a lost device.
void StickyError::reset() {
  {
    std::lock_guard lock(mutex_);
    if (!lost_) {
      failed_ = false;
      detail_.clear();
    }
  }
  report();
}

void StickyError::report() const {
  if (!isSet()) return;
  std::lock_guard lock(mutex_);
  if (!failed_) return;  // Another thread has reset it.
  throw setLastError(lost_ ? orErrorDeviceLost : orErrorLaunchFailure, detail_);
}

// [common.sticky-error.others] A device that waited for a failed one goes on, but its program must learn of it.
std::shared_ptr<KernelRefusal> StickyError::forOthers() const noexcept try {
  if (!isSet()) return nullptr;
  std::lock_guard lock(mutex_);
  return std::make_shared<KernelRefusal>(
      "A stream had to wait for another device, and that one failed: " +
      detail_);
} catch (const std::bad_alloc&) {
  short_for_others_->is_told = false;
  return short_for_others_;
}

// [-]
}  // namespace openreg::hardware
