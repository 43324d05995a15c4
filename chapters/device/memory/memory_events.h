// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/device/memory/bins.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <cstddef>

namespace openreg {

// [device.memory-events] A program that looks for lost memory needs to know of each change, when it happens.
struct MemoryEvent {
  /// PyTorch's kinds of change.
  using Action = c10::CachingDeviceAllocator::TraceEntry::Action;

  Action action;            ///< what happened
  c10::DeviceIndex device;  ///< whose memory it is
  /// The address of the block or the segment; null if memory ran out.
  const void* data;
  /// As it was requested; of a segment, its whole size.
  size_t size;
  c10::StreamId stream;  ///< of the request
};

/// Calls `listen` at each change from now on; null ends that. Of one block, the
/// changes come in their order: an allocation is told after it, a request to
/// free before it. `listen` must not allocate on a device or throw, and must
/// not take Python's lock at `FREE_COMPLETED`, which is told under a lock.
void onMemoryEvent(void (*listen)(const MemoryEvent& event));

/// Calls `tell` with each block that is handed out from now on; null ends that.
void onHandOut(void (*tell)(const void* data, size_t bytes));

/// Tells the listener, if there is one.
void tellOfMemory(const MemoryEvent& event);
/// The same, of a block, and with the `size` that was requested.
void tellOfMemory(MemoryEvent::Action action, const Block* block, size_t size);

// [-]
}  // namespace openreg
