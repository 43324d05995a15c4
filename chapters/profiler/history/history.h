// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/device/memory/memory_events.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace openreg {

// [profiler.history] The history of memory: each change, when it happened, and which line asked for it.
/// A stack as it was captured; its names are looked up later.
using CapturedStack = std::shared_ptr<c10::GatheredContext>;

/// What is kept.
struct HistorySettings {
  /// Whether changes are kept, and not only who holds the memory there is.
  bool keep_changes = true;
  /// For which changes a stack is captured. A free has one of its own.
  bool stacks_of_allocations = true;
  bool stacks_of_frees = true;  ///< as the one above
  /// Whether a stack has the frames of C++ as well as those of Python.
  bool cpp_frames = true;
  /// How many changes are kept of each device; the oldest are dropped first.
  size_t max_entries = SIZE_MAX;
};

/// One change.
struct HistoryEntry {
  MemoryEvent event;  ///< as the allocator told it
  /// Microseconds since 1970.
  int64_t time;
  CapturedStack stack;  ///< null if none was captured
  /// How much memory the device had left when it ran out.
  size_t device_free = 0;
};

/// All that a snapshot is made of.
struct History {
  /// By device.
  std::vector<std::deque<HistoryEntry>> changes;
  /// The stacks that blocks and segments in use were allocated by, by address.
  std::map<std::pair<c10::DeviceIndex, size_t>, CapturedStack> holders;
};

// [profiler.history.functions] Recording starts and stops at any time, and a copy can be taken meanwhile.
/// Starts to record, or changes the settings of a recording.
void startMemoryHistory(const HistorySettings& settings);
/// Stops recording; what was recorded stays.
void stopMemoryHistory();
/// Drops the changes and stacks of all devices; a recording goes on.
void clearMemoryHistory();
/// A copy.
History memoryHistory();

// [-]
}  // namespace openreg
