// SPDX-License-Identifier: BSD-3-Clause
// What every later step asks of devices and streams.
#pragma once

#include "openreg.h"

#include <c10/core/Stream.h>
#include <c10/util/Exception.h>

namespace tiny {

// [first.guard.check] Every error of the driver becomes a Python exception, in one place.
inline constexpr auto kDevice = c10::DeviceType::PrivateUse1;

/// Throws what the driver says of a call that failed.
inline void check(orError_t error) {
  TORCH_CHECK(error == orSuccess, orGetErrorDetail(), " (", orGetErrorName(error), ")");
}

/// The same for a query: whether the work is done.
inline bool isReady(orError_t error) {
  if (error == orErrorNotReady) return false;
  check(error);
  return true;
}

// [first.guard.interface] A device has an index, and each thread has a current device and current streams.
c10::DeviceIndex currentDevice();
/// The stream on which this thread's work for a device goes; -1 is the current device.
c10::Stream currentStream(c10::DeviceIndex index);
/// The driver's name for a stream.
orStream_t handleOf(const c10::Stream& stream);

// [-]
}  // namespace tiny
