// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/core/config.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/common/openreg/tools/step_scheduler.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace openreg::hardware {

// [common.spin] Waking a thread costs more than most kernels, so a thread spins for 50 us before it sleeps.
/// Calls `found()` until it is true or 50 us are over; whether it was.
template <class Found>
bool spin(Found found) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::microseconds(50);
  do {
    for (int look = 0; look < 8; ++look) {
      if (found()) return true;
        // Leaves the core to a hyper-thread that may share it.
#if defined(__x86_64__)
      for (int rest = 0; rest < 8; ++rest) __builtin_ia32_pause();
#endif
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

// [common.host-waiters.callback] Only the three functions that synchronize call back; a wait inside another function must end by itself.
/// What the calling thread calls while it synchronizes.
struct WaitCallback {
  int64_t nanoseconds;  ///< between two calls
  orWaitCallback function;
  void* data;

  // The system's clock, because ThreadSanitizer does not know a wait that ends
  // by the steady one.
  using Clock = std::chrono::system_clock;
  /// When to call.
  Clock::time_point next() const {
    const auto now = Clock::now();
    const std::chrono::nanoseconds most = Clock::time_point::max() - now;
    return now + std::min(std::chrono::nanoseconds(nanoseconds), most);
  }
};

inline constinit thread_local WaitCallback wait_callback{};

/// Returns whether the callback ends the wait. While it runs there is none, so
/// it cannot end a wait of its own.
inline bool callBack() {
  const WaitCallback mine = std::exchange(wait_callback, {});
  const bool ends = mine.function(mine.data) != 0;
  wait_callback = mine;
  return ends;
}

// [common.host-waiters] A waiting host thread announces itself before it checks, so no wake-up is lost.
class HostWaiters {
 public:
  /// Blocks until `done()`; with `calls_back`, a callback may end the wait
  /// before. Returns `done()`. `announce()` tells the device to call `wake`,
  /// and runs before each check of a thread that is about to sleep.
  template <class Done, class Announce>
  bool waitUntil(Done done, Announce announce, bool calls_back = false) {
    if (config().held) {
      stepScheduler().runUntil(done);
      return true;
    }
    ++spinning_;
    const bool found = spin(done);
    --spinning_;
    if (found) return true;
    calls_back &= wait_callback.function != nullptr;
    WaitCallback::Clock::time_point next;
    if (calls_back) next = wait_callback.next();
    std::unique_lock lock(mutex_);
    for (;;) {
      announce();
      if (done()) return true;
      if (!calls_back) {
        woken_.wait(lock);
      } else if (woken_.wait_until(lock, next) == std::cv_status::timeout) {
        lock.unlock();
        if (callBack()) return done();
        next = wait_callback.next();
        lock.lock();
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
