// SPDX-License-Identifier: BSD-3-Clause
// The optional parts of a driver, for tests, profilers and other processes.
#pragma once

#include "openreg.h"

#ifdef __cplusplus
extern "C" {
#endif

// [common.tools] A driver without one of these parts returns orErrorNotSupported from its functions.
/// Returned codes are those of openreg.h, and orErrorNotSupported from any
/// function that the driver does not have. A driver must still define all of
/// them, because the backend links against this header.

// [common.tools.inject] Fault injection makes a chosen call fail.
/// Schedules faults, and cancels those of earlier calls. An order is a list of
/// parts with commas between them and no spaces:
///
/// - `alloc:N`: the N-th orMalloc from now on has no memory;
/// - `copy:N`: the N-th copy fails its device, as a kernel that throws does;
/// - `launch:N`: the same for the N-th launch;
/// - `alloc:N+`, `copy:N+`, `launch:N+`: the N-th and all later ones fail;
/// - `lost:D@N`: device D is lost at its N-th launch or copy from now on, and
///   returns orErrorDeviceLost from then on.
///
/// N is 1 or more, and D is the number of a device. Parts add up: after
/// `alloc:1,alloc:3` the first and the third allocation fail. Setting memory
/// counts as a copy. Calls of all threads are counted together.
///
/// The environment variable OPENREG_INJECT has the same form and is read once.
/// An empty order, or null, cancels all faults.
/// @returns orErrorInvalidConfiguration for anything else, and changes nothing.
OPENREG_EXPORT orError_t orInject(const char* order) OPENREG_NOEXCEPT;

// [common.tools.observe] An observer is called when a command is enqueued, begins and ends.
typedef enum orCommandPhase {
  orCommandEnqueued = 0,
  orCommandBegins = 1,
  orCommandEnds = 2,
} orCommandPhase;

typedef struct orCommandRecord {
  orCommandPhase phase;
  /// The same in all phases of one command, and of no other.
  uint64_t correlation;
  /// The kernel's name, "memcpy", "memset", "record" or "wait".
  const char* name;
  int device;
  orStream_t stream;
  /// Nanoseconds of the steady clock.
  int64_t time;
} orCommandRecord;

/// Called on the host's thread when a command is enqueued, and on the device's
/// when it begins and ends. Must not call the driver and must not throw.
typedef void (*orCommandObserver)(const orCommandRecord* record, void* data);

/// Observes all commands that are enqueued from now on; null removes the
/// observer. There is one at a time. After its removal `data` must stay valid
/// until all devices are synchronised, because commands may still be in flight.
OPENREG_EXPORT orError_t orSetCommandObserver(orCommandObserver observer,
                                              void* data) OPENREG_NOEXCEPT;

// [common.tools.ipc] Another process can open a block of device memory.
typedef struct orIpcMemHandle_t {
  char reserved[64];
} orIpcMemHandle_t;

/// A handle that another process can open while this one lives and the block
/// is not freed. `devPtr` is what orMalloc returned.
OPENREG_EXPORT orError_t orIpcGetMemHandle(orIpcMemHandle_t* handle,
                                           void* devPtr) OPENREG_NOEXCEPT;
/// Maps the other process's block into this one. It is device memory like any
/// other, but it is closed and not freed. A handle that was damaged or invented
/// is refused: the memory must be another device memory's, and the block in it.
/// @returns orErrorInvalidResourceHandle if the handle names no such memory or
/// its process has ended, orErrorMemoryAllocation if there is no address left.
OPENREG_EXPORT orError_t
orIpcOpenMemHandle(void** devPtr, orIpcMemHandle_t handle) OPENREG_NOEXCEPT;
OPENREG_EXPORT orError_t orIpcCloseMemHandle(void* devPtr) OPENREG_NOEXCEPT;

// [-]
#ifdef __cplusplus
}
#endif
