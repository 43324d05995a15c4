// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"

#include <c10/core/Device.h>
#include <c10/util/FunctionRef.h>

#include <optional>

namespace openreg {

// [device.runtime] What the rest of the backend asks the hardware.
inline constexpr auto kDeviceType = c10::DeviceType::PrivateUse1;

/// Devices beyond this number are not used, so arrays with an entry for each
/// device have this size.
inline constexpr size_t kMaxDevices = 16;

/// How many devices this machine has. Never throws: if the driver is broken,
/// the answer is 0, and one warning says why. Starts no device.
c10::DeviceIndex deviceCount() noexcept;

/// The device that is current on the calling thread.
c10::DeviceIndex currentDevice();

/// Makes `index` current on the calling thread; returns the one that was.
/// @throws c10::AcceleratorError if there is no such device.
c10::DeviceIndex exchangeDevice(c10::DeviceIndex index);

/// The same, except that -1 changes nothing.
c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index);

/// `index`, or the current device if `index` is -1, as PyTorch writes it.
/// @throws c10::AcceleratorError if there is no such device.
c10::DeviceIndex resolveDevice(int index);

/// Waits until everything enqueued on the device has run.
/// @throws c10::AcceleratorError if a kernel of it threw.
void synchronizeDevice(c10::DeviceIndex index);

// [device.runtime.wait] A call of the user's that waits can be interrupted, and reports every error.
/// Calls `wait`, which synchronizes with the driver, until it is done or a
/// handler of a signal raises.
/// @throws what it returned, or what the handler raised.
void waitFor(c10::function_ref<orError_t()> wait);

/// Whether work is done, of which a query of the driver has returned `state`:
/// "not ready" is an answer, not an error.
/// @throws as `waitFor`.
bool isDone(orError_t state);

// [device.runtime.scope] A scope makes another device current for a few lines.
class DeviceScope {
 public:
  /// With -1 the current device stays.
  explicit DeviceScope(c10::DeviceIndex index)
      : previous_(maybeExchangeDevice(index)), changed_(previous_ != index) {}
  /// With no device the current one stays.
  explicit DeviceScope(std::optional<c10::Device> device)
      : DeviceScope(device ? device->index() : c10::DeviceIndex{-1}) {}
  ~DeviceScope() {
    if (changed_) orSetDevice(previous_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  const c10::DeviceIndex previous_;
  const bool changed_;
};

// [-]
}  // namespace openreg
