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

/// Refuses a number that no device has.
void checkDevice(int index);
/// The block of device memory that begins at `pointer`; refuses any other
/// pointer.
orPointerAttributes findBlock(const void* pointer);

/// A stream that a call names: the queue that had this handle a moment ago.
struct StreamRef {
  CommandQueue* queue = nullptr;
  orStream_t handle = nullptr;

  /// Both refuse a stream that is destroyed.
  Position position() const { return queue->position(handle); }
  void check() const { position(); }
};

/// The queue of stream `handle`, where null means the current device's default
/// stream. Refuses a handle that is no stream's.
StreamRef findStream(orStream_t handle);

/// The event of `handle`, locked; the handle stays valid as long as the lock.
/// Refuses a handle that is no event's.
struct LockedEvent {
  Event* event = nullptr;
  std::unique_lock<std::mutex> lock;

  Event* operator->() const { return event; }
};
LockedEvent findEvent(orEvent_t handle);

// [-]
}  // namespace openreg::hardware
