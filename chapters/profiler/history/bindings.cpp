// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/profiler/history/history.h"
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/bindings.h"

#include <pybind11/stl.h>
#include <torch/csrc/profiler/combined_traceback.h>
#include <torch/csrc/utils/pybind.h>

#include <unordered_map>

namespace openreg {
namespace {

// [profiler.history.names] Many changes share a stack and many stacks share a frame, so each name is looked up once.
class FrameNames {
 public:
  void add(const CapturedStack& stack) {
    if (!stack) return;
    auto* captured = torch::getCapturedTracebackFromContext(stack);
    if (positions_.emplace(captured, stacks_.size()).second) {
      stacks_.push_back(captured);
    }
  }
  void lookUp() {
    using pybind11::literals::operator""_a;
    found_ = torch::symbolize(stacks_);
    for (const auto& frame : found_.all_frames) {
      frames_.push_back(pybind11::dict("filename"_a = frame.filename,
                                       "name"_a = frame.funcname,
                                       "line"_a = frame.lineno));
    }
  }
  pybind11::list framesOf(const CapturedStack& stack) const {
    pybind11::list frames;
    if (!stack) return frames;
    const auto* captured = torch::getCapturedTracebackFromContext(stack);
    for (uint64_t index : found_.tracebacks[positions_.at(captured)]) {
      frames.append(frames_[index]);
    }
    return frames;
  }

 private:
  std::vector<torch::CapturedTraceback*> stacks_;
  std::unordered_map<const torch::CapturedTraceback*, size_t> positions_;
  torch::SymbolizedTracebacks found_;
  std::vector<pybind11::dict> frames_;
};

// [profiler.history.format] The keys and the words are those of `torch.cuda.memory._snapshot`.
const char* wordFor(MemoryEvent::Action action) {
  using Action = MemoryEvent::Action;
  switch (action) {
    case Action::ALLOC:
      return "alloc";
    case Action::FREE_REQUESTED:
      return "free_requested";
    case Action::FREE_COMPLETED:
      return "free_completed";
    case Action::SEGMENT_ALLOC:
      return "segment_alloc";
    case Action::SEGMENT_FREE:
      return "segment_free";
    case Action::OOM:
      return "oom";
    default:
      return "snapshot";
  }
}

pybind11::dict entryOf(const HistoryEntry& entry, const FrameNames& names) {
  using pybind11::literals::operator""_a;
  const MemoryEvent& event = entry.event;
  pybind11::dict found("action"_a = wordFor(event.action),
                       "size"_a = event.size, "stream"_a = event.stream,
                       "time_us"_a = entry.time,
                       "frames"_a = names.framesOf(entry.stack));
  if (event.action == MemoryEvent::Action::OOM) {
    found["device_free"] = entry.device_free;
  } else {
    found["addr"] = reinterpret_cast<size_t>(event.data);
  }
  return found;
}

// [profiler.history.report] (changes by device, frames by device and address of what is in use).
pybind11::tuple historyReport() {
  const History history = memoryHistory();
  FrameNames names;
  for (const auto& changes : history.changes) {
    for (const HistoryEntry& entry : changes) names.add(entry.stack);
  }
  for (const auto& [key, stack] : history.holders) names.add(stack);
  names.lookUp();
  pybind11::list devices;
  for (c10::DeviceIndex index = 0; index < deviceCount(); ++index) {
    pybind11::list entries;
    if (static_cast<size_t>(index) < history.changes.size()) {
      for (const HistoryEntry& entry : history.changes[index]) {
        entries.append(entryOf(entry, names));
      }
    }
    devices.append(entries);
  }
  pybind11::dict holders;
  for (const auto& [key, stack] : history.holders) {
    holders[pybind11::make_tuple(int{key.first}, key.second)] =
        names.framesOf(stack);
  }
  return pybind11::make_tuple(devices, holders);
}

// [profiler.history.bindings] Python checks the words, and passes on four switches and a number.
void bindHistory(pybind11::module_& module) {
  using NoGil = pybind11::call_guard<pybind11::gil_scoped_release>;
  module.def("memory_history", &historyReport);
  module.def("stop_memory_history", &stopMemoryHistory, NoGil());
  module.def("clear_memory_history", &clearMemoryHistory, NoGil());
  module.def(
      "start_memory_history",
      [](bool keep_changes, bool of_allocations, bool of_frees, bool cpp_frames,
         size_t max_entries) {
        startMemoryHistory(
            {keep_changes, of_allocations, of_frees, cpp_frames, max_entries});
      },
      NoGil());
}

const ChapterBindings history_bindings("profiler", &bindHistory);

// [-]
}  // namespace
}  // namespace openreg
