// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/core/config.h"
#include "torch_openreg/common/openreg/execution/spin.h"
#include "torch_openreg/common/openreg/tools/seeded_scheduler.h"

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace openreg::hardware {

// [common.host-waiters] A waiting host thread announces itself before it checks, so no wake-up is lost.
class HostWaiters {
 public:
  /// Blocks until `done()`. `announce()` tells the device to call `wake`, and
  /// runs before each check of a thread that is about to sleep.
  template <class Done, class Announce>
  void waitUntil(Done done, Announce announce) {
    if (config().seeded) return seededScheduler().runUntil(done);
    ++spinning_;
    const bool found = spin(done);
    --spinning_;
    if (found) return;
    std::unique_lock lock(mutex_);
    for (;;) {
      announce();
      if (done()) return;
      woken_.wait(lock);
    }
  }

  /// Wakes all sleeping host threads, after `prepare()` under their lock.
  template <class Prepare>
  void wake(Prepare prepare) {
    std::lock_guard lock(mutex_);
    prepare();
    woken_.notify_all();
  }

  /// Whether a host thread spins, and so needs to see progress soon.
  bool areSpinning() const { return spinning_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int> spinning_{0};
  std::mutex mutex_;
  std::condition_variable woken_;
};

// [-]
}  // namespace openreg::hardware
