// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/execution/worker_pool.h"

#include "torch_openreg/common/openreg/core/config.h"
#include "torch_openreg/common/openreg/execution/command_queue.h"
#include "torch_openreg/common/openreg/execution/host_waiters.h"
#include "torch_openreg/common/openreg/tools/step_scheduler.h"

#include <cxxabi.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace openreg::hardware {

// [common.worker-pool.start] A device runs with the threads that the system grants, and the first must be granted before a command is enqueued.
void WorkerPool::startThreads() {
  std::lock_guard lock(mutex_);
  if (started_) return;
  if (config().held) {
    stepScheduler().start();
  } else {
    // A worker must not need memory to fall asleep.
    asleep_.reserve(config().device_threads);
    startThread(0);
    try {
      for (int number = 1; number < config().device_threads; ++number) {
        startThread(number);
      }
    } catch (const std::exception&) {
      // The device is slower, which is no reason to fail.
    }
  }
  started_ = true;
}

void WorkerPool::startThread(int number) {
  auto worker = std::make_unique<Worker>(number);
  startDeviceThread(
      "openreg:" + std::to_string(device_) + "/" + std::to_string(number),
      [this, worker = std::move(worker)] { run(*worker); });
}

// [common.worker-pool.run] A worker takes stream after stream, as long as the process lives.
bool& onDeviceThread() {
  thread_local bool own = false;
  return own;
}

void WorkerPool::run(Worker& worker) {
  onDeviceThread() = true;
  for (;;) {
    CommandQueue* const queue = next(worker);
    try {
      queue->run(64);
    } catch (const abi::__forced_unwind&) {
      // A kernel has called pthread_exit, which nobody can stop.
      startThread(worker.number);
      makeReady(queue);
      throw;
    }
  }
}

// [common.worker-pool.ready] The thread that slept last wakes first, because its caches are warm.
void WorkerPool::makeReady(CommandQueue* queue) {
  if (config().held) return stepScheduler().add(queue);
  const int level = queue->priority() - kGreatestPriority;
  std::lock_guard lock(mutex_);
  queue->enter(ready_[level]);
  ++ready_count_[level];
  if (spinning_ == 0) wakeOne();
}

void WorkerPool::wakeOne() {
  if (asleep_.empty()) return;
  asleep_.back()->woken = true;
  asleep_.back()->wake.notify_one();
  asleep_.pop_back();
}

// [common.worker-pool.priorities] A running stream checks for more urgent work without a lock.
bool WorkerPool::shouldGiveWay(int priority, bool turn_is_over) const {
  if (config().held) return turn_is_over;
  const int level = priority - kGreatestPriority;
  for (int higher = 0; higher < level; ++higher) {
    if (ready_count_[higher].load(std::memory_order_relaxed)) return true;
  }
  return turn_is_over && ready_count_[level].load(std::memory_order_relaxed);
}

bool WorkerPool::shouldSpin() { return !config().held; }

// [common.worker-pool.take] The worker that takes a stream wakes another if more streams are ready.
CommandQueue* WorkerPool::take() {
  for (int level = 0; level < kPriorities; ++level) {
    if (ready_[level].empty()) continue;
    CommandQueue* queue =
        CommandQueue::leave(ready_[level], ready_[level].begin());
    --ready_count_[level];
    const bool more = std::any_of(ready_.begin(), ready_.end(),
                                  [](auto& queues) { return !queues.empty(); });
    if (more) wakeOne();
    return queue;
  }
  return nullptr;
}

// [common.worker-pool.next] A worker spins and then sleeps, so an idle device uses no processor time.
CommandQueue* WorkerPool::next(Worker& worker) {
  ++spinning_;
  spin([this] {
    return std::any_of(ready_count_.begin(), ready_count_.end(),
                       [](auto& count) { return count.load() > 0; });
  });
  std::unique_lock lock(mutex_);
  --spinning_;
  for (;;) {
    if (CommandQueue* queue = take()) return queue;
    worker.woken = false;
    asleep_.push_back(&worker);
    worker.wake.wait(lock, [&] { return worker.woken; });
  }
}

// [-]
}  // namespace openreg::hardware
