// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/core/machine.h"

#include <mutex>

namespace openreg::hardware {

// [common.lookup] Numbers, pointers and handles of the interface become objects in one place.
/// The number of the device that is current on the calling thread.
int& currentIndex();
/// The device that is current on the calling thread.
Device& current();

/// Whether device `index` exists; if not, sets the last error.
orError_t checkDevice(int index);
/// Whether `pointer` is the beginning of a block of device memory, and the
/// attributes of the block; if not, sets the last error.
orError_t checkBlock(const void* pointer, orPointerAttributes* attributes);

/// A stream that a call names: the queue that had this handle a moment ago.
struct StreamRef {
  CommandQueue* queue = nullptr;
  orStream_t handle = nullptr;

  explicit operator bool() const { return queue; }
  /// Without a device, and with the last error, if the stream is destroyed.
  Position position() const { return queue->position(handle); }
};

/// The queue of stream `handle`, where null means the current device's default
/// stream. Null, and the last error, if there is no such stream.
StreamRef findStream(orStream_t handle);
/// The position of that stream.
Position findPosition(orStream_t handle);

/// The event of `handle`, locked; the handle stays valid as long as the lock.
/// Null, and the last error, if there is no such event.
struct LockedEvent {
  Event* event = nullptr;
  std::unique_lock<std::mutex> lock;

  explicit operator bool() const { return event; }
  Event* operator->() const { return event; }
};
LockedEvent findEvent(orEvent_t handle);

// [-]
}  // namespace openreg::hardware
