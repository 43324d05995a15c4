// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/common/waiting.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <iterator>
#include <list>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace openreg {

// [profiler.origin] The thread that enqueues a command knows which operator it is in; the device's thread does not.
struct Origin {
  /// The system's number of the thread.
  int32_t thread = 0;
  /// PyTorch's number of the operator; 0 outside of operators.
  uint64_t op = 0;
  /// PyTorch's numbers of the `record_function` ranges around it.
  std::vector<uint64_t> annotations;
};

// [profiler.recorder] Each thread appends to a log of its own; what the records mean is worked out when the profile is over.
struct Entry {
  orRecord record;   ///< its `name` may be gone; the next field has a copy
  std::string name;  ///< of the kernel or the range
  Origin origin;     ///< of what the host's thread did; else empty
};
/// What one thread recorded. A deque, because a vector that grows would hold up
/// a launch while it moves all earlier entries.
using ThreadLog = std::deque<Entry>;

// [profiler.origin.stacks] A profile that ends inside an operator leaves its number behind, so each profile starts anew.
/// PyTorch reports the beginning and the end of each operator and each
/// annotation on the thread where it runs. Only the thread itself changes its
/// numbers, so there is no lock.
struct ThreadState {
  /// The number of the latest profile.
  static inline std::atomic<uint64_t> current_profile{0};

  /// The calling thread's.
  static ThreadState& mine() {
    thread_local ThreadState mine;
    const uint64_t current = current_profile.load(std::memory_order_relaxed);
    if (mine.of_profile != current) mine = {current, mine.thread, {}, {}, {}};
    return mine;
  }
  /// Drops the last one, if there is one.
  static void pop(std::vector<uint64_t>& numbers) {
    if (!numbers.empty()) numbers.pop_back();
  }
  /// Of what this thread enqueues now.
  Origin origin() const {
    return {thread, ops.empty() ? 0 : ops.back(), annotations};
  }

  uint64_t of_profile = 0;  ///< to which the rest belongs
  /// The system's number of the thread.
  int32_t thread = static_cast<int32_t>(syscall(SYS_gettid));
  std::vector<uint64_t> ops;          ///< those that it is in
  std::vector<uint64_t> annotations;  ///< as `ops`
  /// The recorder's; null until the thread records something.
  ThreadLog* log = nullptr;
};

// [profiler.recorder.start] The threads forget their logs of earlier profiles before this one records.
/// Records what the driver reports while it lives, until it is stopped.
class Recorder {
 public:
  Recorder() {
    ++ThreadState::current_profile;
    // An observer written in Python may be waiting for Python's lock right now.
    WithoutGil others_run;
    check(orAddObserver(&observer_, &observe, this));
  }
  ~Recorder() {
    WithoutGil others_run;
    if (observer_) orRemoveObserver(observer_);
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // [profiler.recorder.stop] PyTorch waits for the current device only, so we wait for the others.
  /// Waits for all devices, so that no command is recorded without its end, and
  /// then stops.
  void stop() {
    if (!observer_) return;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    end_ = std::chrono::nanoseconds(now).count();
    WithoutGil others_run;
    const LeavesRefusals leaves;
    for (c10::DeviceIndex index = 0; index < deviceCount(); ++index) {
      int started = 0;
      if (orDeviceIsStarted(index, &started) || !started) continue;
      DeviceScope scope(index);
      // An error is the program's, whose next call reports it.
      orDeviceSynchronize();
    }
    check(orRemoveObserver(std::exchange(observer_, nullptr)));
    mergeLogs();
  }
  /// What was recorded, in the order in which it ended. Call `stop` before.
  const std::vector<Entry>& entries() const { return entries_; }

  // [profiler.recorder.observe] An end repeats its beginning, so beginnings are not recorded.
 private:
  static void observe(const orRecord* record, void* data) try {
    if (record->phase == orCommandBegins) return;
    auto* recorder = static_cast<Recorder*>(data);
    const bool on_host = record->phase != orCommandEnds;
    if (on_host && record->begin > recorder->end_) return;
    ThreadState& mine = ThreadState::mine();
    if (!mine.log) mine.log = recorder->addLog();
    mine.log->push_back(
        {*record, record->name, on_host ? mine.origin() : Origin{}});
  } catch (const std::bad_alloc&) {
    // The driver must not be left in the middle of a launch. The slice is
    // missing.
  }
  ThreadLog* addLog() {
    std::lock_guard lock(mutex_);
    return &logs_.emplace_back();
  }

  // [profiler.recorder.merge] The driver no longer calls the observer, so the logs of all threads are complete.
  void mergeLogs() {
    for (ThreadLog& log : logs_) {
      std::move(log.begin(), log.end(), std::back_inserter(entries_));
    }
    logs_.clear();
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const Entry& one, const Entry& other) {
                       return one.record.end < other.record.end;
                     });
  }

  std::mutex mutex_;
  /// A list, because each thread keeps a pointer to its log.
  std::list<ThreadLog> logs_;
  std::vector<Entry> entries_;
  /// What the host began later is not part of the profile.
  std::atomic<int64_t> end_{INT64_MAX};
  orObserver_t observer_ = nullptr;
};

// [-]
}  // namespace openreg
