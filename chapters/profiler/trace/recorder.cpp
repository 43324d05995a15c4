// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/profiler/trace/recorder.h"
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/waiting.h"

#include <c10/util/Exception.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <new>
#include <utility>

namespace openreg {
namespace {

// [profiler.origin.stacks] A profile that ends inside an operator leaves its number behind, so each profile starts anew.
std::atomic<uint64_t> current_profile{0};

struct ThreadState {
  uint64_t of_profile = 0;
  int32_t thread = static_cast<int32_t>(syscall(SYS_gettid));
  std::vector<uint64_t> ops, annotations;
  /// The recorder's; null until the thread records something.
  ThreadLog* log = nullptr;
};

ThreadState& threadState() {
  thread_local ThreadState mine;
  const uint64_t current = current_profile.load(std::memory_order_relaxed);
  if (mine.of_profile != current) {
    mine.of_profile = current;
    mine.ops.clear();
    mine.annotations.clear();
    mine.log = nullptr;
  }
  return mine;
}

void popNumber(std::vector<uint64_t>& numbers) {
  if (!numbers.empty()) numbers.pop_back();
}

Origin originOf(const ThreadState& state) {
  return {state.thread, state.ops.empty() ? 0 : state.ops.back(),
          state.annotations};
}

// [-]
}  // namespace

// [profiler.origin.push] Only the thread itself changes its numbers, so there is no lock.
void pushOperator(uint64_t number) { threadState().ops.push_back(number); }
void popOperator() { popNumber(threadState().ops); }
void pushAnnotation(uint64_t number) {
  threadState().annotations.push_back(number);
}
void popAnnotation() { popNumber(threadState().annotations); }

// [profiler.recorder.observe] An end repeats its beginning, so beginnings are not recorded.
void Recorder::observe(const orRecord* record, void* data) try {
  if (record->phase == orCommandBegins) return;
  auto* recorder = static_cast<Recorder*>(data);
  const bool on_host = record->phase != orCommandEnds;
  if (on_host && record->begin > recorder->end_) return;
  ThreadState& mine = threadState();
  if (!mine.log) mine.log = recorder->addLog();
  mine.log->push_back(
      {*record, record->name, on_host ? originOf(mine) : Origin{}});
} catch (const std::bad_alloc&) {
  // The driver must not be left in the middle of a launch. The slice is
  // missing.
}

ThreadLog* Recorder::addLog() {
  std::lock_guard lock(mutex_);
  return &logs_.emplace_back();
}

// [profiler.recorder.start] The threads forget their logs of earlier profiles before this one records.
Recorder::Recorder() {
  ++current_profile;
  // An observer written in Python may be waiting for Python's lock right now.
  WithoutGil others_run;
  check(orAddObserver(&observer_, &observe, this));
}

// [profiler.recorder.stop] PyTorch waits for the current device only, so we wait for the others.
void Recorder::stop() {
  if (!observer_) return;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  end_ = std::chrono::nanoseconds(now).count();
  WithoutGil others_run;
  for (c10::DeviceIndex index = 0; index < deviceCount(); ++index) {
    int started = 0;
    if (orDeviceIsStarted(index, &started) || !started) continue;
    DeviceScope scope(index);
    // The error of a failed device is the program's; its next call reports it.
    // A refusal is reported once, and this is the call.
    if (orDeviceSynchronize() == orErrorKernelRefused)
      TORCH_WARN(orGetErrorDetail());
  }
  check(orRemoveObserver(std::exchange(observer_, nullptr)));
  mergeLogs();
}

// [profiler.recorder.merge] The driver no longer calls the observer, so the logs of all threads are complete.
void Recorder::mergeLogs() {
  for (ThreadLog& log : logs_) {
    std::move(log.begin(), log.end(), std::back_inserter(entries_));
  }
  logs_.clear();
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& one, const Entry& other) {
                     return one.record.end < other.record.end;
                   });
}

Recorder::~Recorder() {
  WithoutGil others_run;
  if (observer_) orRemoveObserver(observer_);
}

// [-]
}  // namespace openreg
