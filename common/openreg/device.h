// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "config.h"
#include "handles.h"
#include "lottery.h"
#include "memory.h"
#include "stream.h"

#include <array>
#include <condition_variable>
#include <deque>
#include <string>

namespace openreg::hardware {

// [common.device.priority] A smaller number is a higher priority, as in CUDA.
inline constexpr int kLeastPriority = 0;
inline constexpr int kGreatestPriority = -2;

// [common.device] A device is some threads, and the streams that are ready for them.
class Device {
 public:
  explicit Device(int index) : index_(index) {}
  int index() const { return index_; }

  /// Queues a stream that has something to run.
  void makeReady(Stream* stream);
  /// Whether a stream of priority `mine` should give way: to a more urgent one
  /// always, to an equal one when its turn is over.
  bool someoneIsDue(int mine, bool turn_is_over) const;
  /// Whether the calling thread runs kernels.
  static bool& isOwnThread() {
    thread_local bool own = false;
    return own;
  }
  bool mayLinger() const { return !config().seeded; }
  /// Marks the recording as happened and wakes the streams that wait for it.
  void happen(Recording& recording);
  /// Wakes the host threads that wait, after `first()` under their lock.
  template <class First>
  void wakeHosts(First first) {
    std::lock_guard lock(done_mutex_);
    first();
    done_.notify_all();
  }

  /// Waits for all commands that were submitted to `stream` before the call, or
  /// for those up to a number.
  void drain(Stream& stream) { drain(stream, stream.submitted()); }
  void drain(Stream& stream, uint64_t number);
  /// The same for all streams of the device.
  void drainAll();
  /// Waits until the recording has happened.
  void await(Recording& recording);
  /// Whether a host thread waits for the device: then it must be quick.
  bool isAwaited() const { return waiting_.load(std::memory_order_relaxed); }

  // [common.device.streams] Which streams a device has, for those who wait for all.
  orStream_t defaultStream();
  orStream_t addStream(int priority);
  /// A closed stream has run dry.
  void forget(Stream* stream, orStream_t handle);

  // [common.device.failure] The first failure stays until the device is reset.
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  void fail(const char* kernel, const char* reason);
  /// Forgets the failure, unless the device is lost.
  orError_t reset();
  /// The device is gone for good.
  void lose();
  bool lost() const { return lost_; }
  /// orSuccess, or the sticky error, remembered for the calling thread.
  orError_t health() const;

  // [common.device.state] One lock for scheduling, one for waiting, one for the rest.
 private:
  struct Worker {
    std::condition_variable wake;
    bool woken = false;
  };

  template <class Done>
  bool spinAwaiting(Done done);
  void start();
  void run(Worker& worker);
  Stream* next(Worker& worker);
  Stream* take();

  static constexpr int kPriorities = kLeastPriority - kGreatestPriority + 1;

  const int index_;
  std::mutex schedule_mutex_;
  std::array<std::deque<Stream*>, kPriorities> ready_;
  std::array<std::atomic<int>, kPriorities> ready_count_{};
  std::vector<Worker*> asleep_;
  std::atomic<int> spinning_{0};
  bool started_ = false;

  std::atomic<int> waiting_{0};
  std::mutex done_mutex_;
  std::condition_variable done_;

  mutable std::mutex mutex_;
  std::vector<Stream*> streams_;
  std::once_flag default_once_;
  orStream_t default_stream_ = nullptr;
  std::atomic<bool> failed_{false};
  std::atomic<bool> lost_{false};
  std::string failure_;
};

// [common.device.spin] Waking a thread costs more than most kernels: look again for a while.
template <class Looks>
bool spin(Looks found) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::microseconds(50);
  do {
    for (int look = 0; look < 8; ++look) {
      if (found()) return true;
        // The other thread may share this core: leave the core to it meanwhile.
#if defined(__x86_64__)
      for (int rest = 0; rest < 8; ++rest) __builtin_ia32_pause();
#endif
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

// [-]
}  // namespace openreg::hardware
