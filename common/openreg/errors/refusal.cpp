// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/errors/refusal.h"

#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"

#include <algorithm>
#include <utility>

namespace openreg::hardware {

// [common.refusal.keep] Later refusals are dropped, because they may follow from the first.
void PendingRefusal::keep(std::shared_ptr<KernelRefusal> refusal) {
  if (!refusal || get()) return;
  std::lock_guard lock(mutex_);
  kept_ = std::move(refusal);
  is_kept_ = true;
}

std::shared_ptr<KernelRefusal> PendingRefusal::get() const {
  if (!is_kept_) return nullptr;
  std::lock_guard lock(mutex_);
  return kept_ && !kept_->is_told ? kept_ : nullptr;
}

// [common.refusal.tell] Streams that wait for each other share a refusal, and one of the calls that wait for them gets it.
static thread_local int leaves_refusals = 0;

void PendingRefusal::tell() {
  if (leaves_refusals) return;
  const std::shared_ptr<KernelRefusal> refusal = get();
  if (refusal && !refusal->is_told.exchange(true))
    throw setLastError(orErrorKernelRefused, refusal->sentence);
}

std::shared_ptr<KernelRefusal> PendingRefusal::take() {
  std::shared_ptr<KernelRefusal> refusal = get();
  std::lock_guard lock(mutex_);
  kept_ = nullptr;
  is_kept_ = false;
  return refusal;
}

// [-]
}  // namespace openreg::hardware

// [common.refusal.leave] A thread may have nobody to tell.
orError_t orLeaveRefusals(int is_on) noexcept {
  using openreg::hardware::leaves_refusals;
  leaves_refusals = std::max(leaves_refusals + (is_on ? 1 : -1), 0);
  return orSuccess;
}

// [-]
