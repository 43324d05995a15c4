// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/profiler/history/history.h"
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/openreg/interface/openreg.h"

#include <torch/csrc/profiler/combined_traceback.h>

#include <chrono>
#include <mutex>

namespace openreg {
namespace {

using Action = MemoryEvent::Action;

// [profiler.history.state] Never destroyed, because memory is freed until the very end of the process.
struct State {
  std::mutex mutex;
  HistorySettings settings;
  History history;
};

State& state() {
  static State& state = *new State;
  return state;
}

// [profiler.history.stack] Capturing a stack takes Python's lock, so it happens before ours is taken.
Stack captureStack(Action action, const HistorySettings& settings) {
  const bool is_allocation =
      action == Action::ALLOC || action == Action::SEGMENT_ALLOC;
  const bool wanted =
      is_allocation ? settings.stacks_of_allocations : settings.stacks_of_frees;
  // The allocator holds its lock when a free completes; the request had one.
  if (!wanted || action == Action::FREE_COMPLETED) return nullptr;
  return torch::CapturedTraceback::gather(/*python=*/true, /*script=*/true,
                                          settings.cpp_frames);
}

// [profiler.history.hold] A segment begins where its first block does, so the two are told apart by a bit that no address has.
std::pair<c10::DeviceIndex, size_t> holderKey(const MemoryEvent& event) {
  const bool segment = event.action == Action::SEGMENT_ALLOC ||
                       event.action == Action::SEGMENT_FREE;
  return {event.device, reinterpret_cast<size_t>(event.data) | segment};
}

void updateHolders(History& history, const MemoryEvent& event,
                   const Stack& stack) {
  switch (event.action) {
    case Action::ALLOC:
    case Action::SEGMENT_ALLOC:
      if (stack) history.holders[holderKey(event)] = stack;
      return;
    case Action::FREE_COMPLETED:
    case Action::SEGMENT_FREE:
      history.holders.erase(holderKey(event));
      return;
    default:
      return;
  }
}

// [profiler.history.record] The settings are copied under the lock, and the entry is added under it.
void record(const MemoryEvent& event) {
  State& now = state();
  HistorySettings settings;
  {
    std::lock_guard lock(now.mutex);
    settings = now.settings;
  }
  const Stack stack = captureStack(event.action, settings);
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  HistoryEntry entry{
      event,
      std::chrono::duration_cast<std::chrono::microseconds>(time).count(),
      stack};
  size_t total;
  if (event.action == Action::OOM) orMemGetInfo(&entry.device_free, &total);
  std::lock_guard lock(now.mutex);
  updateHolders(now.history, event, stack);
  if (!now.settings.keep_changes) return;
  now.history.changes.resize(kMaxDevices);
  auto& changes = now.history.changes[event.device];
  changes.push_back(entry);
  while (changes.size() > now.settings.max_entries) changes.pop_front();
}

// [-]
}  // namespace

// [profiler.history.start] One listener serves all settings.
void startMemoryHistory(const HistorySettings& settings) {
  {
    std::lock_guard lock(state().mutex);
    state().settings = settings;
  }
  onMemoryEvent(&record);
}

void stopMemoryHistory() { onMemoryEvent(nullptr); }

void clearMemoryHistory() {
  History old;  // Its stacks are destroyed without the lock.
  std::lock_guard lock(state().mutex);
  std::swap(old, state().history);
}

History memoryHistory() {
  std::lock_guard lock(state().mutex);
  return state().history;
}

// [-]
}  // namespace openreg
