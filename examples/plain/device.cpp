// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/plain/machine.h"

#include <cstring>

using namespace openreg::hardware;

// [plain.device] Counting and choosing devices starts nothing.
orError_t orGetDeviceCount(int* count) noexcept {
  if (!count) return refuseNull(__func__);
  *count = Machine::kDevices;
  return orSuccess;
}

orError_t orGetDevice(int* device) noexcept {
  if (!device) return refuseNull(__func__);
  *device = current();
  return orSuccess;
}

orError_t orSetDevice(int device) noexcept {
  if (const orError_t error = checkDevice(device)) return error;
  current() = device;
  return orSuccess;
}

orError_t orDeviceIsStarted(int device, int* started) noexcept {
  if (!started) return refuseNull(__func__);
  *started = isStarted();
  return checkDevice(device);
}

// [plain.device.properties] What can be said of the device without starting it.
orError_t orGetDeviceProperties(orDeviceProp* properties, int device) noexcept {
  if (!properties) return refuseNull(__func__);
  if (const orError_t error = checkDevice(device)) return error;
  *properties = {"plain memory", Machine::kMemory, 1, Region::kAlignment};
  return orSuccess;
}

orError_t orDeviceGetStreamPriorityRange(int* least, int* greatest) noexcept {
  if (!least || !greatest) return refuseNull(__func__);
  *least = *greatest = 0;
  return orSuccess;
}

// [plain.device.synchronize] No command can fail, so a reset has nothing to forget.
orError_t orDeviceSynchronize() noexcept {
  return guarded([] { return machine().wait(machine().submitted()); });
}

orError_t orDeviceReset() noexcept { return orDeviceSynchronize(); }

// [-]
