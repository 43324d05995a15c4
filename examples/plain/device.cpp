// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/plain/machine.h"

using namespace openreg::hardware;

// [plain.device] Counting and choosing devices starts nothing.
orError_t orGetDeviceCount(int* count) noexcept {
  return caught([&] { answer(count, "orGetDeviceCount") = Machine::kDevices; });
}

orError_t orGetDevice(int* device) noexcept {
  return caught([&] { answer(device, "orGetDevice") = current(); });
}

orError_t orSetDevice(int device) noexcept {
  return caught([&] {
    checkDevice(device);
    current() = device;
  });
}

orError_t orDeviceIsStarted(int device, int* started) noexcept {
  return caught([&] {
    answer(started, "orDeviceIsStarted") = isStarted();
    checkDevice(device);
  });
}

// [plain.device.properties] What can be said of the device without starting it.
orError_t orGetDeviceProperties(orDeviceProp* properties, int device) noexcept {
  return caught([&] {
    checkDevice(device);
    answer(properties, "orGetDeviceProperties") = {
        "plain memory", Machine::kMemory, 1, Region::kAlignment};
  });
}

orError_t orDeviceGetStreamPriorityRange(int* least, int* greatest) noexcept {
  return caught([&] {
    answer(least, "orDeviceGetStreamPriorityRange") = 0;
    answer(greatest, "orDeviceGetStreamPriorityRange") = 0;
  });
}

// [plain.device.synchronize] No command can fail, so a reset has nothing to forget.
orError_t orDeviceSynchronize() noexcept {
  return guarded([] { machine().waitForAll(); });
}

orError_t orDeviceReset() noexcept { return orDeviceSynchronize(); }

// [-]
