// SPDX-License-Identifier: BSD-3-Clause
// What tests, profilers and other processes can ask of the simulated device.
#pragma once

#include "openreg.h"

#ifdef __cplusplus
extern "C" {
#endif

// [common.tools.inject] Faults come when they are ordered.
/// Orders faults, separated by commas, and forgets earlier orders:
///
/// - `alloc:N`: the N-th orMalloc from now on has no memory;
/// - `copy:N`: the N-th copy fails its device, as a kernel that throws does;
/// - `launch:N`: the same for the N-th launch;
/// - `lost:D@N`: device D is lost at its N-th launch or copy from now on, and
///   answers orErrorDeviceLost ever after.
///
/// The environment variable OPENREG_INJECT has the same form and is read once.
/// An empty order, or null, forgets all.
/// @returns orErrorInvalidConfiguration for anything else; nothing is changed.
OPENREG_EXPORT orError_t orInject(const char* order);

// [common.tools.observe] Every command can be watched as it begins and ends.
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

/// Called on the host's thread when a command is enqueued, on the device's when
/// it begins and ends. Must not call openreg and must not throw.
typedef void (*orCommandObserver)(const orCommandRecord* record, void* data);

/// Watches all commands that are enqueued from now on; null ends it. One
/// observer at a time. `data` must live until all devices were synchronised
/// after that: a command may be under way.
OPENREG_EXPORT orError_t orSetCommandObserver(orCommandObserver observer,
                                              void* data);

// [common.tools.ipc] A block of memory can be opened by another process.
typedef struct orIpcMemHandle_t {
  char reserved[64];
} orIpcMemHandle_t;

/// A handle that another process can open while this one lives and the block
/// is not freed. `devPtr` is what orMalloc returned.
OPENREG_EXPORT orError_t orIpcGetMemHandle(orIpcMemHandle_t* handle,
                                           void* devPtr);
/// The address of the other process's block here. It is device memory like any
/// other, except that it is closed and not freed.
OPENREG_EXPORT orError_t orIpcOpenMemHandle(void** devPtr,
                                            orIpcMemHandle_t handle);
OPENREG_EXPORT orError_t orIpcCloseMemHandle(void* devPtr);

// [-]
#ifdef __cplusplus
}
#endif
