// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/waiting.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

namespace openreg {

// [device.runtime.count] Counting devices starts none of them.
c10::DeviceIndex deviceCount() noexcept {
  // Cached, because every launch asks and the answer never changes.
  static const c10::DeviceIndex count = [] {
    constexpr int kMost = kMaxDevices;
    int count = 0;
    if (orGetDeviceCount(&count) == orSuccess) return std::min(count, kMost);
    // Asking must not throw, but a mistyped variable is no choice.
    TORCH_WARN("There is no openreg device: ", orGetErrorDetail());
    return 0;
  }();
  return count;
}

// [device.runtime.used] A device for which our arrays have no entry is refused, although the driver has it.
static int checkUsed(int index) {
  constexpr int kMost = kMaxDevices;
  int count = 0;
  // What the driver does not have either, it refuses itself.
  if (C10_LIKELY(index < kMost) || orGetDeviceCount(&count) != orSuccess ||
      index >= count) {
    return index;
  }
  throw c10::AcceleratorError(
      {__func__, __FILE__, __LINE__}, orErrorInvalidDevice,
      c10::str("openreg:", index, " is not used; this machine has ", count,
               " openreg devices, of which the first ", kMost, " are."));
}

c10::DeviceIndex currentDevice() {
  int index = 0;
  check(orGetDevice(&index));
  return static_cast<c10::DeviceIndex>(checkUsed(index));
}

// [device.runtime.exchange] The driver checks the index before it changes anything.
c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) {
  const c10::DeviceIndex previous = currentDevice();
  if (index != previous) check(orSetDevice(checkUsed(index)));
  return previous;
}

c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) {
  return index == -1 ? currentDevice() : exchangeDevice(index);
}

// [device.runtime.resolve] PyTorch passes -1 for the current device; we never return it.
c10::DeviceIndex resolveDevice(int index) {
  if (index == -1) index = currentDevice();
  // The driver refuses it with a message, and changes nothing.
  if (index < 0 || index >= deviceCount()) check(orSetDevice(checkUsed(index)));
  return static_cast<c10::DeviceIndex>(index);
}

// [device.runtime.synchronize] The driver does the waiting.
void synchronizeDevice(c10::DeviceIndex index) {
  DeviceScope scope(index);
  waitFor([] { return orDeviceSynchronize(); });
}

void waitFor(c10::function_ref<orError_t()> wait) {
  check(waitInterruptibly(wait));
}

bool isDone(orError_t state) {
  if (state == orErrorNotReady) return false;
  check(state);
  return true;
}

// [-]
}  // namespace openreg
