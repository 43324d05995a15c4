// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg_tools.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <string>
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

/// PyTorch reports the beginning and the end of each operator and each
/// annotation on the thread where it runs.
void pushOperator(uint64_t number);
void popOperator();                    ///< the last one of this thread
void pushAnnotation(uint64_t number);  ///< as `pushOperator`
void popAnnotation();                  ///< the last one of this thread

// [profiler.recorder] Each thread appends to a log of its own; what the records mean is worked out when the profile is over.
struct Entry {
  orRecord record;   ///< its `name` may be gone; the next field has a copy
  std::string name;  ///< of the kernel or the range
  Origin origin;     ///< noted when the command was enqueued
};
/// What one thread recorded. A deque, because a vector that grows would hold up
/// a launch while it moves all earlier entries.
using ThreadLog = std::deque<Entry>;

/// Records what the driver reports while it lives, until it is stopped.
class Recorder {
 public:
  Recorder();
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Waits for all devices, so that no command is recorded without its end, and
  /// then stops.
  void stop();
  /// What was recorded, in the order in which it ended. Call `stop` before.
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  static void observe(const orRecord* record, void* recorder);
  ThreadLog* addLog();
  void mergeLogs();

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
