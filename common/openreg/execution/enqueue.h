// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/core/config.h"
#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/core/lookup.h"

#include <utility>

namespace openreg::hardware {

// [common.enqueue] Every command passes one function, which refuses it on a failed device and bounds the queue.
/// Enqueues a command with room for `bytes` of arguments that `fill` completes,
/// unless `check(device)` refuses it or the device has failed, and does not
/// wait. `position` becomes that of the command in its stream.
/// @returns the error for which nothing was enqueued.
template <class Check, class Fill>
orError_t append(const StreamRef& stream, Position* position, size_t bytes,
                 Check check, Fill fill) {
  return stream.queue->push(
      stream.handle, position, bytes,
      [&](Device& device) {
        orError_t error = check(device);
        if (!error) error = device.sticky_error.report();
        // Before anything is enqueued, because it may fail.
        if (!error) device.workers.start();
        return error;
      },
      std::move(fill));
}

// [common.enqueue.waits] What waits for a command reports the error of its device.
/// Waits for the last command at `position` if the schedule is `blocking`,
/// unless the stream waits for a number in memory, and for room in the queue if
/// the host runs far ahead. If `tells`, it reports as after any other wait.
orError_t holdBack(const StreamRef& stream, const Position& position,
                   bool tells = true);

/// The error of the device at `position`, or what a kernel refused on the
/// stream.
orError_t reportTo(const StreamRef& stream, const Position& position);

/// Waits for the last command at `position`, unless the calling thread's limit
/// of waiting comes first.
/// @returns orErrorNotReady then, and otherwise the device's error, if any.
orError_t waitFor(const StreamRef& stream, const Position& position);

/// Enqueues a kernel. If `fault` is not null the kernel fails for that reason.
/// `position`, unless null, is that of the kernel in its stream. Without
/// `tells`, an error means that nothing was enqueued, whatever the schedule.
orError_t submit(orStream_t handle, const orKernel* kernel, const char* name,
                 void* arguments, const char* fault,
                 Position* position = nullptr, bool tells = true);

// [-]
}  // namespace openreg::hardware
