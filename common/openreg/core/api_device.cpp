// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/core/lookup.h"
#include "torch_openreg/common/openreg/races/races.h"
#include "torch_openreg/common/openreg/graphs/capture.h"
#include "torch_openreg/common/openreg/tools/observer.h"

using namespace openreg::hardware;

// [common.api-device.choose] Counting and choosing devices starts nothing.
orError_t orGetDeviceCount(int* count) noexcept try {
  if (!count) return refuseNull(__func__);
  if (!config().problem.empty()) {
    return setLastError(orErrorInvalidConfiguration, config().problem);
  }
  *count = config().device_count;
  return orSuccess;
} catch (...) {
  return failWithException();
}

orError_t orGetDevice(int* device) noexcept try {
  if (!device) return refuseNull(__func__);
  *device = currentIndex();
  return orSuccess;
} catch (...) {
  return failWithException();
}

orError_t orSetDevice(int device) noexcept try {
  if (orError_t error = checkDevice(device)) return error;
  currentIndex() = device;
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-device.properties] The properties come from the configuration.
orError_t orGetDeviceProperties(orDeviceProp* properties, int device) noexcept
    try {
  if (!properties) return refuseNull(__func__);
  if (orError_t error = checkDevice(device)) return error;
  *properties = {"openreg, a simulated device", config().device_memory,
                 config().device_threads,
                 layoutOfBlocks(config().guards_memory).alignment};
  return orSuccess;
} catch (...) {
  return failWithException();
}

orError_t orDeviceGetStreamPriorityRange(int* least, int* greatest) noexcept
    try {
  if (!least || !greatest) return refuseNull(__func__);
  *least = kLeastPriority;
  *greatest = kGreatestPriority;
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-device.synchronize] Synchronizing reports the sticky error, and a reset clears it.
orError_t orDeviceSynchronize() noexcept try {
  ObservedCall call("orDeviceSynchronize", orOperationSynchronize);
  if (orError_t error = enter()) return error;
  if (orError_t error = checkMayWait()) return error;
  if (orError_t error = checkNotCaptured(current(), __func__)) return error;
  if (!current().synchronize(/*calls_back=*/true)) return orErrorNotReady;
  if (racesAreWanted()) races().hostWaited(current());
  if (orError_t error = current().sticky_error.report()) return error;
  return current().tellRefusal();
} catch (...) {
  return failWithException();
}

orError_t orDeviceReset() noexcept try {
  if (orError_t error = enter()) return error;
  if (orError_t error = checkMayWait()) return error;
  if (orError_t error = checkNotCaptured(current(), __func__)) return error;
  const int64_t limit = current().limitWaiting();
  current().synchronize();
  current().allowWaiting(limit);
  if (racesAreWanted()) races().hostWaited(current());
  return current().reset();
} catch (...) {
  return failWithException();
}

// [-]
