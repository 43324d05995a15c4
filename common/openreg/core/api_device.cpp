// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/core/lookup.h"
#include "torch_openreg/common/openreg/races/races.h"
#include "torch_openreg/common/openreg/graphs/capture.h"
#include "torch_openreg/common/openreg/tools/observer.h"

using namespace openreg::hardware;

// [common.api-device.choose] Counting and choosing devices starts nothing.
orError_t orGetDeviceCount(int* count) noexcept {
  return caught([&] {
    if (!count) throw refuseNull("orGetDeviceCount");
    if (!config().problem.empty()) {
      throw setLastError(orErrorInvalidConfiguration, config().problem);
    }
    *count = config().device_count;
  });
}

orError_t orGetDevice(int* device) noexcept {
  return caught([&] {
    if (!device) throw refuseNull("orGetDevice");
    *device = currentIndex();
  });
}

orError_t orSetDevice(int device) noexcept {
  return caught([&] {
    checkDevice(device);
    currentIndex() = device;
  });
}

// [common.api-device.properties] The properties come from the configuration.
orError_t orGetDeviceProperties(orDeviceProp* properties, int device) noexcept {
  return caught([&] {
    if (!properties) throw refuseNull("orGetDeviceProperties");
    checkDevice(device);
    *properties = {"openreg, a simulated device", config().device_memory,
                   config().device_threads,
                   layoutOfBlocks(config().guards_memory).alignment};
  });
}

orError_t orDeviceGetStreamPriorityRange(int* least, int* greatest) noexcept {
  return caught([&] {
    if (!least || !greatest) throw refuseNull("orDeviceGetStreamPriorityRange");
    *least = kLeastPriority;
    *greatest = kGreatestPriority;
  });
}

// [common.api-device.synchronize] Synchronizing reports the sticky error, and a reset clears it.
orError_t orDeviceSynchronize() noexcept {
  return caught([&] {
    ObservedCall call("orDeviceSynchronize", orOperationSynchronize);
    enter();
    checkMayWait("orDeviceSynchronize");
    checkNotCaptured(current(), "orDeviceSynchronize");
    if (!current().synchronize(/*calls_back=*/true)) return orErrorNotReady;
    if (racesAreWanted()) races().hostWaited(current());
    current().sticky_error.report();
    current().tellRefusal();
    return orSuccess;
  });
}

orError_t orDeviceReset() noexcept {
  return guarded([&] {
    checkMayWait("orDeviceReset");
    checkNotCaptured(current(), "orDeviceReset");
    const int64_t limit = current().limitWaiting();
    try {
      current().synchronize();
    } catch (...) {
      current().allowWaiting(limit);
      throw;
    }
    current().allowWaiting(limit);
    if (racesAreWanted()) races().hostWaited(current());
    current().reset();
  });
}

// [-]
