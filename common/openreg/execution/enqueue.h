// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/core/config.h"
#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/core/lookup.h"

namespace openreg::hardware {

// [common.enqueue] A call enqueues its command, and then what waits for the command reports the error of its device.
/// Waits for the last command at `position` if the schedule is `blocking`,
/// unless the stream waits for a number in memory, and for room in the queue if
/// the host runs far ahead. If `tells`, it reports as after any other wait.
void holdBack(const StreamRef& stream, const Position& position,
              bool tells = true);

/// Throws the error of the device at `position`, or what a kernel refused on
/// the stream.
void report(const StreamRef& stream, const Position& position);

/// Waits for the last command at `position`, unless the calling thread's limit
/// of waiting comes first.
/// @returns orErrorNotReady then, which is not a failure.
/// @throws the device's error, if any.
orError_t waitFor(const StreamRef& stream, const Position& position);

/// Enqueues a kernel. If `fault` is not null the kernel fails for that reason.
/// Without `tells`, an error means that nothing was enqueued, whatever the
/// schedule.
/// @returns the position of the kernel in its stream.
Position submit(orStream_t handle, const orKernel* kernel, const char* name,
                void* arguments, const char* fault, bool tells = true);

// [-]
}  // namespace openreg::hardware
