// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/tools/seeded_scheduler.h"

#include "torch_openreg/common/openreg/core/config.h"
#include "torch_openreg/common/openreg/execution/command_queue.h"
#include "torch_openreg/common/openreg/execution/worker_pool.h"
#include "torch_openreg/common/openreg/signals/watcher.h"

#include <chrono>
#include <iterator>
#include <thread>

namespace openreg::hardware {

// [common.seeded.start] The thread lives as long as the process.
void SeededScheduler::start() {
  std::lock_guard lock(mutex_);
  if (started_) return;
  BlockedSignals blocked;
  std::thread([this] { run(); }).detach();
  started_ = true;
}

SeededScheduler& seededScheduler() {
  static SeededScheduler& scheduler = *new SeededScheduler(config().seed);
  return scheduler;
}

void stepIfSeeded() {
  // A thread of the device is itself in the middle of a step.
  if (config().seeded && !onDeviceThread()) seededScheduler().step();
}

void SeededScheduler::add(CommandQueue* queue) {
  std::lock_guard lock(mutex_);
  queue->enter(ready_);
}

// [common.seeded.step] The host requests one command and waits for it, so nothing else runs meanwhile.
bool SeededScheduler::step() {
  std::lock_guard turn(turn_mutex_);
  watcher().check();
  std::unique_lock lock(mutex_);
  if (ready_.empty()) return false;
  step_requested_ = true;
  step_changed_.notify_all();
  step_changed_.wait(lock, [&] { return !step_requested_; });
  return true;
}

// [common.seeded.rest] The next command may have to wait for another process, which needs the processor.
void SeededScheduler::rest() {
  if (watcher().isWatching()) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  } else {
    std::this_thread::yield();
  }
}

// [common.seeded.run] The only random choice is which ready stream runs its next command.
void SeededScheduler::run() {
  onDeviceThread() = true;
  std::unique_lock lock(mutex_);
  for (;;) {
    step_changed_.wait(lock, [&] { return step_requested_; });
    const auto chosen = static_cast<ptrdiff_t>(random_() % ready_.size());
    CommandQueue* queue =
        CommandQueue::leave(ready_, std::next(ready_.begin(), chosen));
    lock.unlock();
    queue->run(1);
    lock.lock();
    step_requested_ = false;
    step_changed_.notify_all();
  }
}

// [-]
}  // namespace openreg::hardware
