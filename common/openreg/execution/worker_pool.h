// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

namespace openreg::hardware {

class CommandQueue;

// [common.worker-pool.priority] A smaller number is a higher priority, as in CUDA.
inline constexpr int kLeastPriority = 0;
inline constexpr int kGreatestPriority = -2;

/// Whether the calling thread runs kernels.
bool& onDeviceThread();

// [common.worker-pool] A device has a few threads, and a queue of ready streams for each priority.
class WorkerPool {
 public:
  explicit WorkerPool(int device) : device_(device) {}

  /// Schedules a stream that has a command to run.
  void makeReady(CommandQueue* queue);
  /// Whether a stream of this priority should give way: to a stream of higher
  /// priority always, to one of the same priority when its turn is over.
  bool hasHigherPriorityWork(int priority, bool turn_is_over) const;
  /// Whether a worker with an empty stream should wait for its next command.
  static bool shouldSpin();

  // [common.worker-pool.state] The number of ready streams can be read without the lock.
 private:
  struct Worker {
    std::condition_variable wake;
    bool woken = false;
  };

  void start();
  void run(Worker& worker);
  CommandQueue* next(Worker& worker);
  CommandQueue* take();
  void wakeOne();

  static constexpr int kPriorities = kLeastPriority - kGreatestPriority + 1;

  const int device_;
  std::mutex mutex_;
  std::array<std::deque<CommandQueue*>, kPriorities> ready_;
  std::array<std::atomic<int>, kPriorities> ready_count_{};
  std::vector<Worker*> asleep_;
  std::atomic<int> spinning_{0};
  bool started_ = false;
};

// [-]
}  // namespace openreg::hardware
