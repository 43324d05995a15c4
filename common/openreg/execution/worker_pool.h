// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fenv.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>
#include <vector>

namespace openreg::hardware {

class CommandQueue;

// [common.worker-pool.priority] A smaller number is a higher priority, as in CUDA.
inline constexpr int kLeastPriority = 0;
inline constexpr int kGreatestPriority = -2;

/// Whether the calling thread runs kernels.
bool& onDeviceThread();

// [common.worker-pool.inherited] A new thread inherits the signal mask and the floating-point modes, so both are the device's while threads are started.
/// During its life, the calling thread blocks all signals, except those of a
/// fault, and rounds to nearest with subnormal numbers.
class InheritedState {
 public:
  InheritedState();
  ~InheritedState();
  InheritedState(const InheritedState&) = delete;
  InheritedState& operator=(const InheritedState&) = delete;

 private:
  sigset_t signals_;
  fenv_t modes_;
};

// [common.worker-pool] A device has a few threads, and a queue of ready streams for each priority.
class WorkerPool {
 public:
  explicit WorkerPool(int device) : device_(device) {}

  /// Starts the threads unless they run. Called before a command is enqueued.
  /// @throws std::system_error or std::bad_alloc if not one could be started.
  void start() {
    if (!started_.load(std::memory_order_acquire)) startThreads();
  }
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
    explicit Worker(int its_number) : number(its_number) {}
    const int number;
    std::condition_variable wake;
    bool woken = false;
  };

  void startThreads();
  void startThread(int number);
  void run(Worker& worker);
  CommandQueue* next(Worker& worker);
  CommandQueue* take();
  void wakeOne();

  static constexpr int kPriorities = kLeastPriority - kGreatestPriority + 1;

  const int device_;
  std::mutex mutex_;
  std::array<std::list<CommandQueue*>, kPriorities> ready_;
  std::array<std::atomic<int>, kPriorities> ready_count_{};
  std::vector<Worker*> asleep_;
  std::atomic<int> spinning_{0};
  std::atomic<bool> started_{false};
};

// [-]
}  // namespace openreg::hardware
