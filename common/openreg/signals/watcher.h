// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/execution/event.h"
#include "torch_openreg/common/openreg/signals/futex.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace openreg::hardware {

// [common.watcher.wait] A wait for a number is a recording that completes when the number is there.
/// A stream parks at it as at that of an event.
struct NumberWait : Recording {
  uint32_t* word = nullptr;
  uint32_t value = 0;
  /// The next one in the list that it is in.
  std::shared_ptr<NumberWait> next;

  /// Whether it ends with `number` at the word: because the number is large
  /// enough, or because the device has failed or does not wait any longer.
  bool isOver(uint32_t number) const;
  bool isOver() const { return isOver(load(word)); }
};

// [common.watcher] One thread of the process looks after all streams that wait for a number.
class Watcher {
 public:
  /// Starts the thread unless it runs or commands are held. Called before
  /// a wait is enqueued.
  /// @throws std::system_error if the system refuses the thread.
  void start();
  /// Completes `wait` when it is over. Called by a thread of the device, so it
  /// allocates nothing.
  void add(std::shared_ptr<NumberWait> wait);
  /// Completes the waits that are over. The scheduler of steps calls it before
  /// each command, so that a schedule repeats its order.
  void check();
  bool isWatching() const { return count_ > 0; }

  // [common.watcher.state] The watcher sleeps on a word of its own, too, which changes when a wait is added.
 private:
  void run();
  void check(FutexSet* pending, bool* fits);

  std::mutex mutex_;
  bool started_ = false;
  std::shared_ptr<NumberWait> first_;
  std::atomic<int> count_{0};
  uint32_t changes_ = 0;
};

Watcher& watcher();

// [-]
}  // namespace openreg::hardware
