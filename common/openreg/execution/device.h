// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/execution/command_queue.h"
#include "torch_openreg/common/openreg/execution/host_waiters.h"
#include "torch_openreg/common/openreg/errors/sticky_error.h"
#include "torch_openreg/common/openreg/execution/worker_pool.h"

#include <atomic>
#include <cstdint>
#include <mutex>

namespace openreg::hardware {

// [common.device] A device is its threads, the host threads that wait for it, its error and its streams.
class Device {
 public:
  explicit Device(int index)
      : index(index), sticky_error(index), workers(index) {}

  const int index;
  StickyError sticky_error;
  WorkerPool workers;
  HostWaiters host_waiters;

  /// Waits for the first `number` commands of `queue`, which were submitted
  /// while it was a stream of this device. With `calls_back`, the thread's
  /// callback may end the wait; returns whether it did not.
  bool synchronize(CommandQueue& queue, uint64_t number,
                   bool calls_back = false);
  /// The same, but only until the stream waits for a number in memory.
  void runUntilNumber(CommandQueue& queue, uint64_t number);
  /// The same as `synchronize` for all streams of the device.
  bool synchronize(bool calls_back = false);

  /// Refuses a command if the device has failed, and starts the threads. Both
  /// come before anything is enqueued.
  void admit() {
    sticky_error.report();
    workers.start();
  }
  /// Throws what a kernel of the device has refused.
  void tellRefusal();
  /// Clears the error and the refusals; throws the error if the device is lost.
  void reset();

  // [common.device.give-up] A stream may wait for a number that is never written, which must not hold a reset or an exit.
  /// Limits the waits of all streams to one second from now, and returns the
  /// limit for `allowWaiting`, which removes it.
  int64_t limitWaiting();
  void allowWaiting(int64_t limit);
  bool givesUpWaiting() const;

  // [common.device.streams] A device lists its streams for those that wait for all of them.
  orStream_t defaultStream();
  orStream_t createStream(int priority);
  /// Removes a destroyed stream whose commands have all run, and keeps what it
  /// has not told.
  void removeStream(CommandQueue* queue, orStream_t handle);

 private:
  static constexpr int64_t kNoLimit = INT64_MAX;

  /// On the steady clock, in nanoseconds.
  std::atomic<int64_t> waits_until_{kNoLimit};
  std::mutex mutex_;
  PendingRefusal of_destroyed_;
  CommandQueue::List streams_;
  std::mutex default_mutex_;
  std::atomic<orStream_t> default_stream_{nullptr};
};

// [-]
}  // namespace openreg::hardware
