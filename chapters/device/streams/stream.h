// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/openreg/interface/openreg.h"

#include <c10/core/Stream.h>

namespace openreg {

// [device.stream] A stream's number in PyTorch is its handle in the driver.
/// So we need no table of streams, and a stream that other code created with
/// the driver works as it is. Number 0 is the default stream.

/// The driver's handle, whichever device is current.
/// @throws c10::ValueError if `stream` does not belong to one of our devices.
orStream_t nativeStream(const c10::Stream& stream);

/// Checks that the stream exists and belongs to the device that it names.
/// @throws c10::ValueError otherwise.
void checkStream(const c10::Stream& stream);

/// The stream that has this handle in the driver.
/// @throws c10::ValueError if there is none, or if it belongs to another
/// device.
c10::Stream streamOfHandle(orStream_t handle, c10::DeviceIndex index);

/// Its number is 0 on every device.
c10::Stream defaultStream(c10::DeviceIndex index);

/// The range ends at 0, the priority of the default stream.
inline constexpr int kGreatestPriority = -2;

/// The next of the 32 streams of this device and priority. A priority out of
/// range is moved to the nearer end of the range.
c10::Stream poolStream(c10::DeviceIndex index, int priority);

/// The stream that is current for the device on the calling thread.
c10::Stream currentStream(c10::DeviceIndex index);
/// Its handle in the driver, for a launch.
orStream_t currentNativeStream(c10::DeviceIndex index);

/// Makes `stream` current for its device on the calling thread; returns the
/// one that was.
c10::Stream exchangeStream(c10::Stream stream);

// [device.stream.captured] A driver may record the work of a stream, to run it later.
/// Whether the commands of `stream` are recorded and not run. Nothing may wait
/// for such commands. False if the stream does not exist.
bool isCaptured(const c10::Stream& stream);

// [device.stream.events] Memory that is freed waits for an event on each stream that used it.
/// An event that completes with the work now enqueued on `stream`, for
/// `isReached`. On a stream that is captured, no such work is running, and the
/// event is complete at once. If none can be recorded, this waits for all
/// devices instead; null if there are too many events, and where the thread
/// must not wait: in device code, and during a capture that forbids it. Meant
/// for destructors: it does not throw.
orEvent_t eventIn(const c10::Stream& stream) noexcept;
/// Whether `event`, which came from `eventIn`, is complete; destroys it then.
/// A null event counts as complete once the calling thread may wait for the
/// devices, and has.
bool isReached(orEvent_t event) noexcept;
/// Later work of `stream` begins after the work now enqueued on `other`, unless
/// that is captured. If no event can be recorded there, the host waits.
/// @throws what the driver refuses, and if the host must not wait.
void waitForStream(const c10::Stream& stream, const c10::Stream& other);

// [-]
}  // namespace openreg
