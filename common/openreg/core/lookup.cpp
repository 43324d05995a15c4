// SPDX-License-Identifier: BSD-3-Clause
#include "common/openreg/core/lookup.h"

#include "common/openreg/core/failure.h"

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
  return fail(orErrorInvalidDevice, "openreg:", index,
              " does not exist; this machine has ", config().device_count,
              " openreg devices, numbered from 0.");
}

orError_t checkBlock(const void* pointer, orPointerAttributes* attributes) {
  *attributes = machine().memory.attributes(pointer);
  if (attributes->type == orMemoryTypeDevice &&
      attributes->pointer == pointer) {
    return orSuccess;
  }
  return fail(orErrorInvalidValue, pointer,
              " is not what orMalloc returned, or was freed before.");
}

// [common.lookup.handle] A null stream handle means the default stream of the current device.
CommandQueue* findStream(orStream_t handle) {
  CommandQueue* queue =
      machine().streams.find(handle ? handle : current().defaultStream());
  if (!queue) {
    fail(orErrorInvalidResourceHandle, "Stream ", handle,
         " does not exist; it was never created, or it is destroyed.");
  }
  return queue;
}

Event* findEvent(orEvent_t handle) {
  Event* event = machine().events.find(handle);
  if (!event) {
    fail(orErrorInvalidResourceHandle, "Event ", handle,
         " does not exist; it was never created, or it is destroyed.");
  }
  return event;
}

// [-]
}  // namespace openreg::hardware
