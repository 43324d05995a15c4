// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/core/config.h"
#include "torch_openreg/common/openreg/execution/spin.h"
#include "torch_openreg/common/openreg/tools/step_scheduler.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

namespace openreg::hardware {

// [common.host-waiters.limit] Only the three functions that synchronize have a limit; a wait inside another function must end by itself.
/// When a wait gives up; empty for never. The system's clock, because
/// ThreadSanitizer does not know a wait that ends by the steady one.
using WaitDeadline = std::optional<std::chrono::system_clock::time_point>;

/// Nanoseconds that the calling thread's synchronizing waits; 0 is no limit.
inline constinit thread_local int64_t wait_limit = 0;

inline WaitDeadline waitDeadline() {
  if (wait_limit == 0) return std::nullopt;
  using std::chrono::system_clock;
  const auto now = system_clock::now();
  const std::chrono::nanoseconds most = system_clock::time_point::max() - now;
  return now + std::min(std::chrono::nanoseconds(wait_limit), most);
}

// [common.host-waiters] A waiting host thread announces itself before it checks, so no wake-up is lost.
class HostWaiters {
 public:
  /// Blocks until `done()`, or until the deadline; returns `done()`.
  /// `announce()` tells the device to call `wake`, and runs before each check
  /// of a thread that is about to sleep.
  template <class Done, class Announce>
  bool waitUntil(Done done, Announce announce, WaitDeadline deadline = {}) {
    if (config().held) {
      stepScheduler().runUntil(done);
      return true;
    }
    ++spinning_;
    const bool found = spin(done);
    --spinning_;
    if (found) return true;
    std::unique_lock lock(mutex_);
    for (;;) {
      announce();
      if (done()) return true;
      if (!deadline) {
        woken_.wait(lock);
      } else if (woken_.wait_until(lock, *deadline) ==
                 std::cv_status::timeout) {
        return done();
      }
    }
  }

  // [common.host-waiters.wake] Waking costs a lock, so a worker wakes the host only for what it has announced.
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
