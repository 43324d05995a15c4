// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "common/openreg/core/config.h"
#include "common/openreg/execution/device.h"

#include <utility>

namespace openreg::hardware {

// [common.enqueue] Every command passes one function, which refuses it on a failed device and bounds the queue.
/// Enqueues a command that `fill` completes, and waits for it if the schedule
/// is `blocking`.
/// @returns the device's sticky error, and enqueues nothing then.
template <class Fill>
orError_t enqueue(CommandQueue& queue, Fill fill) {
  Device& device = queue.device();
  if (orError_t error = device.sticky_error.report()) return error;
  const uint64_t number = queue.push(std::move(fill));
  // A thread of the device would wait for itself.
  if (onDeviceThread()) return orSuccess;
  if (config().blocking) {
    device.synchronize(queue);
    return device.sticky_error.report();
  }
  // Without a bound a host that runs ahead would fill its memory with commands.
  // Reading the device's counter is expensive, so it is read now and then.
  constexpr uint64_t kMaxPending = 4096;
  if (number % 256 == 0 && number > queue.completed() + kMaxPending) {
    device.synchronize(queue, number - kMaxPending);
  }
  return orSuccess;
}

/// Enqueues a kernel. If `fault` is not null the kernel fails for that reason.
orError_t submit(orStream_t handle, const orKernel* kernel, const char* name,
                 void* arguments, const char* fault);

// [-]
}  // namespace openreg::hardware
