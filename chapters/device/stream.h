// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "chapters/device/runtime.h"
#include "common/openreg/interface/openreg.h"

#include <c10/core/Stream.h>

namespace openreg {

// [device.stream] A stream's number in PyTorch is its handle in the driver.
/// So a stream needs no table of ours, and one made by somebody else with the
/// driver works as it is. Number 0 is the default stream.

/// The driver's handle, whichever device is current.
/// @throws c10::ValueError if `stream` is not of our devices.
orStream_t nativeStream(const c10::Stream& stream);

/// Nothing, if there is such a stream and it is of the device it says.
/// @throws c10::ValueError otherwise.
void checkStream(const c10::Stream& stream);

/// The stream that has this handle in the driver.
/// @throws c10::ValueError if there is none, or it is another device's.
c10::Stream streamOfHandle(orStream_t handle, c10::DeviceIndex index);

c10::Stream defaultStream(c10::DeviceIndex index);

inline constexpr int kGreatestPriority = -2;

/// One of 32 streams of this device and priority, in turn. Priorities run from
/// 0 to the greatest; what is out of range is moved to its nearer end.
c10::Stream poolStream(c10::DeviceIndex index, int priority);

/// An event that happens when `stream` has done what it has to do now. If there
/// can be none, this waits for the device, and what it returns counts as
/// happened. For destructors: it does not throw, and the event is the caller's.
orEvent_t eventIn(const c10::Stream& stream);

/// The stream that is current for the device on the calling thread.
c10::Stream currentStream(c10::DeviceIndex index);

/// Makes `stream` current for its device on the calling thread; returns the
/// one that was.
c10::Stream exchangeStream(c10::Stream stream);

// [-]
}  // namespace openreg
