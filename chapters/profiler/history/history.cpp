// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/profiler/history/history.h"
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/openreg/interface/openreg.h"

#include <torch/csrc/profiler/combined_traceback.h>

#include <chrono>
#include <mutex>

namespace openreg {
namespace {

using MemoryAction = MemoryEvent::Action;

// [profiler.history.state] Never destroyed, because memory is freed until the very end of the process.
struct HistoryState {
  std::mutex mutex;
  HistorySettings settings;
  History history;
};

HistoryState& historyState() {
  static HistoryState& state = *new HistoryState;
  return state;
}

// [profiler.history.stack] Capturing a stack takes Python's lock, so it happens before ours is taken.
CapturedStack captureStack(MemoryAction action,
                           const HistorySettings& settings) {
  const bool is_allocation =
      action == MemoryAction::ALLOC || action == MemoryAction::SEGMENT_ALLOC;
  const bool wanted =
      is_allocation ? settings.stacks_of_allocations : settings.stacks_of_frees;
  // The allocator holds its lock when a free completes; the request had one.
  if (!wanted || action == MemoryAction::FREE_COMPLETED) return nullptr;
  return torch::CapturedTraceback::gather(/*python=*/true, /*script=*/true,
                                          settings.cpp_frames);
}

// [profiler.history.hold] A segment begins where its first block does, so the two are told apart by a bit that no address has.
std::pair<c10::DeviceIndex, size_t> holderKey(const MemoryEvent& event) {
  const bool segment = event.action == MemoryAction::SEGMENT_ALLOC ||
                       event.action == MemoryAction::SEGMENT_FREE;
  return {event.device, reinterpret_cast<size_t>(event.data) | segment};
}

void updateHolders(History& history, const MemoryEvent& event,
                   const CapturedStack& stack) {
  switch (event.action) {
    case MemoryAction::ALLOC:
    case MemoryAction::SEGMENT_ALLOC:
      if (stack) {
        history.holders[holderKey(event)] = stack;
        return;
      }
      [[fallthrough]];  // What was here before is not its holder.
    case MemoryAction::FREE_COMPLETED:
    case MemoryAction::SEGMENT_FREE:
      history.holders.erase(holderKey(event));
      return;
    default:
      return;
  }
}

// [profiler.history.record] The settings are copied under the lock, and the entry is added under it.
void recordChange(const MemoryEvent& event) {
  HistoryState& now = historyState();
  HistorySettings settings;
  {
    std::lock_guard lock(now.mutex);
    settings = now.settings;
  }
  const CapturedStack stack = captureStack(event.action, settings);
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  HistoryEntry entry{
      event,
      std::chrono::duration_cast<std::chrono::microseconds>(time).count(),
      stack};
  size_t total;
  if (event.action == MemoryAction::OOM)
    orMemGetInfo(&entry.device_free, &total);
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
    std::lock_guard lock(historyState().mutex);
    historyState().settings = settings;
  }
  onMemoryEvent(&recordChange);
}

void stopMemoryHistory() {
  std::unique_lock lock(historyState().mutex);
  historyState().settings = {.keep_changes = false,
                             .stacks_of_allocations = false,
                             .stacks_of_frees = false};
  // A block that is freed loses its holder, also when nothing is recorded.
  if (!historyState().history.holders.empty()) return;
  lock.unlock();
  onMemoryEvent(nullptr);
}

void clearMemoryHistory() {
  History old;  // Its stacks are destroyed without the lock.
  std::lock_guard lock(historyState().mutex);
  std::swap(old, historyState().history);
}

History memoryHistory() {
  std::lock_guard lock(historyState().mutex);
  return historyState().history;
}

// [-]
}  // namespace openreg
