// SPDX-License-Identifier: BSD-3-Clause
// An optional part of a driver: a stream waits for a number in memory, and
// writes one, without the host.
#pragma once

#include "openreg.h"

#ifdef __cplusplus
extern "C" {
#endif

// [common.signals] A driver without signals returns orErrorNotSupported from these functions.
/// Returned codes are those of openreg.h, and orErrorNotSupported from both
/// functions if the driver has no signals. A driver must still define them,
/// because the backend links against this header.
///
/// `devPtr` is the address of a number of 32 bits, aligned to 4 bytes: in
/// memory of any device, in memory of another process that is open here, or in
/// pinned host memory. Any other address returns orErrorInvalidValue.

// [common.signals.wait] A stream that waits holds no thread, and whatever waits for the stream waits too.
/// The work enqueued on `stream` from now on waits until the number at `devPtr`
/// is at least `value`, counted modulo 2^32: until (int32_t)(*devPtr - value)
/// >= 0. The comparison begins when the earlier work of the stream has run. A
/// number that a kernel stores atomically, but does not signal, is seen after
/// 10 ms at the latest.
///
/// A call that waits for a stream or a device waits for this number too. That
/// includes orFree, orFreeHost and orIpcCloseMemHandle, which wait for all
/// devices, so the memory outlives the wait. A program must therefore not make
/// such a call before it has enqueued, on another stream, the write for which
/// its own stream or that of another process waits. Under
/// OPENREG_SCHEDULE=blocking, this call and later ones that enqueue on `stream`
/// return at once as long as the number is not there.
///
/// The wait also ends when its device fails or is lost; what follows it is then
/// dropped. When the device is reset or the process exits, a wait has one more
/// second, and then fails the device. A stream that is destroyed keeps waiting,
/// and then runs what is left.
/// @returns orErrorStreamCaptureUnsupported if the stream is being captured.
OPENREG_EXPORT orError_t orStreamWaitValue32(orStream_t stream,
                                             const void* devPtr,
                                             uint32_t value) OPENREG_NOEXCEPT;

// [common.signals.write] A write is a command like a kernel, so a failed device does not write.
/// Writes `value` to `devPtr` after all earlier work of the stream, visible to
/// every process that has the memory open, and wakes waiting streams. What the
/// earlier work has written is visible to the work that follows the wait. A
/// capture records the write, and each launch of the graph repeats it.
OPENREG_EXPORT orError_t orStreamWriteValue32(orStream_t stream, void* devPtr,
                                              uint32_t value) OPENREG_NOEXCEPT;

// [common.signals.signal] Code that runs can signal the streams that wait for a number in memory, in a kernel or on the host.
/// Stores `value` and wakes the streams of all processes that wait for the
/// number, as `orStreamWriteValue32` does. What the thread
/// has written before is visible to the work that follows the wait. `pointer`
/// is an address as the calling code follows it: in a kernel one from
/// `onDevice`, or one of pinned host memory, which host code may signal as
/// well.
OPENREG_EXPORT void orSignalValue32(void* pointer,
                                    uint32_t value) OPENREG_NOEXCEPT;

// [-]
#ifdef __cplusplus
}
#endif
