// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/core/lookup.h"

#include "torch_openreg/common/openreg/core/failure.h"

namespace openreg::hardware {

// [common.lookup.device] The current device belongs to the thread, and checking a number starts nothing.
int& currentIndex() {
  thread_local int index = 0;
  return index;
}

Device& current() { return *machine().devices[currentIndex()]; }

void checkDevice(int index) {
  checkConfiguration();
  if (index < 0 || index >= config().device_count)
    throw refuseDevice(index, config().device_count);
}

orPointerAttributes findBlock(const void* pointer) {
  const orPointerAttributes block = machine().memory.attributes(pointer);
  if (block.type != orMemoryTypeDevice || block.pointer != pointer)
    throw refuseBlock(pointer, "orMalloc");
  return block;
}

// [common.lookup.handle] A null stream handle means the default stream of the current device.
StreamRef findStream(orStream_t handle) {
  if (!handle) handle = current().defaultStream();
  CommandQueue* const queue = machine().streams.find(handle);
  if (!queue) throw refuseStream(handle);
  return {queue, handle};
}

// [common.lookup.event] Another thread may destroy the event and create the next one in its slot, so the handle is compared under the lock.
LockedEvent findEvent(orEvent_t handle) {
  if (Event* event = machine().events.find(handle)) {
    std::unique_lock lock(event->mutex);
    if (event->handle == handle) return {event, std::move(lock)};
  }
  throw refuseEvent(handle);
}

// [-]
}  // namespace openreg::hardware
