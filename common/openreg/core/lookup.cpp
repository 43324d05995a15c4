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

orError_t checkDevice(int index) {
  if (orError_t error = checkConfiguration()) return error;
  if (index >= 0 && index < config().device_count) return orSuccess;
  return refuseDevice(index, config().device_count);
}

orError_t checkBlock(const void* pointer, orPointerAttributes* attributes) {
  *attributes = machine().memory.attributes(pointer);
  if (attributes->type == orMemoryTypeDevice &&
      attributes->pointer == pointer) {
    return orSuccess;
  }
  return refuseBlock(pointer, "orMalloc");
}

// [common.lookup.handle] A null stream handle means the default stream of the current device.
StreamRef findStream(orStream_t handle) {
  if (!handle) handle = current().defaultStream();
  StreamRef stream{machine().streams.find(handle), handle};
  if (!stream) refuseStream(handle);
  return stream;
}

Position findPosition(orStream_t handle) {
  const StreamRef stream = findStream(handle);
  return stream ? stream.position() : Position{};
}

// [common.lookup.event] Another thread may destroy the event and create the next one in its slot, so the handle is compared under the lock.
LockedEvent findEvent(orEvent_t handle) {
  if (Event* event = machine().events.find(handle)) {
    std::unique_lock lock(event->mutex);
    if (event->handle == handle) return {event, std::move(lock)};
  }
  refuseEvent(handle);
  return {};
}

// [-]
}  // namespace openreg::hardware
