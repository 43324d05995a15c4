// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/memory/memory_events.h"
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/bindings.h"
#include "torch_openreg/common/openreg/interface/openreg.h"

#include <pybind11/stl.h>
#include <torch/csrc/profiler/combined_traceback.h>

#include <array>
#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace openreg {
namespace {

using Action = MemoryEvent::Action;

// [profiler.history] The history of memory: each change, when it happened, and which line asked for it.
/// A stack as it was captured; its names are looked up later.
using CapturedStack = std::shared_ptr<c10::GatheredContext>;

/// What is kept.
struct HistorySettings {
  /// Whether changes are kept, and not only who holds the memory there is.
  bool keep_changes = false;
  /// For which changes a stack is captured. A free has one of its own.
  bool stacks_of_allocations = false;
  bool stacks_of_frees = false;
  /// Whether a stack has the frames of C++ as well as those of Python.
  bool cpp_frames = false;
  /// How many changes are kept of each device; the oldest are dropped first.
  size_t max_entries = 0;

  bool operator==(const HistorySettings&) const = default;
};

struct HistoryEntry {
  MemoryEvent event;
  int64_t time;  // microseconds since 1970
  CapturedStack stack;
  size_t device_free = 0;  // when the device ran out
};

struct History {
  std::array<std::deque<HistoryEntry>, kMaxDevices> changes;
  /// The stacks that blocks and segments in use were allocated by, by address.
  std::map<std::pair<int, size_t>, CapturedStack> holders;
};

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
CapturedStack captureStack(Action action, const HistorySettings& settings) {
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
void updateHolders(History& history, const MemoryEvent& event,
                   const CapturedStack& stack) {
  const bool is_segment = event.action == Action::SEGMENT_ALLOC ||
                          event.action == Action::SEGMENT_FREE;
  const std::pair<int, size_t> key(
      event.device, reinterpret_cast<size_t>(event.data) | is_segment);
  switch (event.action) {
    case Action::ALLOC:
    case Action::SEGMENT_ALLOC:
      if (stack) {
        history.holders[key] = stack;
        return;
      }
      [[fallthrough]];  // What was here before is not its holder.
    case Action::FREE_COMPLETED:
    case Action::SEGMENT_FREE:
      history.holders.erase(key);
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
  if (event.action == Action::OOM) orMemGetInfo(&entry.device_free, &total);
  std::lock_guard lock(now.mutex);
  // Meanwhile, another thread may have ended what the stack was captured for.
  updateHolders(now.history, event, now.settings == settings ? stack : nullptr);
  if (!now.settings.keep_changes) return;
  auto& changes = now.history.changes[event.device];
  changes.push_back(entry);
  while (changes.size() > now.settings.max_entries) changes.pop_front();
}

// [profiler.history.start] One listener serves all settings.
void startMemoryHistory(bool keep_changes, bool of_allocations, bool of_frees,
                        bool cpp_frames, size_t max_entries) {
  std::lock_guard lock(historyState().mutex);
  historyState().settings = {keep_changes, of_allocations, of_frees, cpp_frames,
                             max_entries};
  onMemoryEvent(&recordChange);
}

void stopMemoryHistory() {
  if (orIsForked()) return;  // The lock may have been locked at the fork.
  std::lock_guard lock(historyState().mutex);
  historyState().settings = {};
  // A block that is freed loses its holder, also when nothing is recorded.
  if (historyState().history.holders.empty()) onMemoryEvent(nullptr);
}

void clearMemoryHistory() {
  History old;  // Its stacks are destroyed without the lock.
  std::lock_guard lock(historyState().mutex);
  std::swap(old, historyState().history);
}

// [-]
}  // namespace
}  // namespace openreg

namespace torch {

// [profiler.history.names] PyTorch looks up the names of many stacks at once.
/// A list of frames for each stack. Declared here, because PyTorch's own header
/// includes a library that the wheel does not have.
TORCH_API std::vector<pybind11::object> py_symbolize(
    std::vector<CapturedTraceback*>& stacks);

// [-]
}  // namespace torch

namespace openreg {
namespace {

// [profiler.history.format] The keys and the words are those of `torch.cuda.memory._snapshot`.
pybind11::dict entryOf(const HistoryEntry& entry) {
  using pybind11::literals::operator""_a;
  static const std::map<Action, const char*> words = {
      {Action::ALLOC, "alloc"},
      {Action::FREE_REQUESTED, "free_requested"},
      {Action::FREE_COMPLETED, "free_completed"},
      {Action::SEGMENT_ALLOC, "segment_alloc"},
      {Action::SEGMENT_FREE, "segment_free"},
      {Action::OOM, "oom"},
  };
  const MemoryEvent& event = entry.event;
  pybind11::dict found("action"_a = words.at(event.action),
                       "size"_a = event.size, "stream"_a = event.stream,
                       "time_us"_a = entry.time);
  if (event.action == Action::OOM) {
    found["device_free"] = entry.device_free;
  } else {
    found["addr"] = reinterpret_cast<size_t>(event.data);
  }
  return found;
}

// [profiler.history.report] (changes by device, and by device and address what holds the memory in use), each with frames.
pybind11::tuple historyReport() {
  std::unique_lock lock(historyState().mutex);
  const History history = historyState().history;
  lock.unlock();
  std::vector<torch::CapturedTraceback*> stacks;
  std::vector<pybind11::dict> owners;
  const auto addFrames = [&](pybind11::dict to, const CapturedStack& stack) {
    to["frames"] = pybind11::list();
    if (!stack) return to;
    stacks.push_back(torch::getCapturedTracebackFromContext(stack));
    owners.push_back(to);
    return to;
  };
  pybind11::list devices;
  for (c10::DeviceIndex index = 0; index < deviceCount(); ++index) {
    pybind11::list entries;
    for (const HistoryEntry& entry : history.changes[index]) {
      entries.append(addFrames(entryOf(entry), entry.stack));
    }
    devices.append(entries);
  }
  pybind11::dict holders;
  for (const auto& [key, stack] : history.holders) {
    holders[pybind11::cast(key)] = addFrames({}, stack);
  }
  const auto frames = torch::py_symbolize(stacks);
  for (size_t i = 0; i < frames.size(); ++i) owners[i]["frames"] = frames[i];
  return pybind11::make_tuple(devices, holders);
}

// [profiler.history.bindings] Python checks the words, and passes on four switches and a number.
const ChapterBindings history_bindings("profiler", [](pybind11::module_& m) {
  using NoGil = pybind11::call_guard<pybind11::gil_scoped_release>;
  m.def("memory_history", &historyReport);
  m.def("start_memory_history", &startMemoryHistory, NoGil());
  m.def("stop_memory_history", &stopMemoryHistory, NoGil());
  m.def("clear_memory_history", &clearMemoryHistory, NoGil());
});

// [-]
}  // namespace
}  // namespace openreg
