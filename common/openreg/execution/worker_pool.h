// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/background.h"

#include <fenv.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace openreg::hardware {

class CommandQueue;

// [common.worker-pool.priority] A smaller number is a higher priority, as in CUDA.
inline constexpr int kLeastPriority = 0;
inline constexpr int kGreatestPriority = -2;

/// Whether the calling thread runs kernels.
bool& onDeviceThread();

// [common.worker-pool.thread] A new thread inherits the floating-point modes of the program, and a kernel must not.
/// Runs `body()` in the background, on a thread of this name that rounds to
/// nearest with subnormal numbers.
/// @throws std::system_error or std::bad_alloc if there is no such thread.
template <class Body>
void startDeviceThread(std::string name, Body body) {
  runInBackground([name = std::move(name), body = std::move(body)]() mutable {
    pthread_setname_np(pthread_self(), name.c_str());
    fesetenv(FE_DFL_ENV);
    body();
  });
}

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
  bool shouldGiveWay(int priority, bool turn_is_over) const;
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
