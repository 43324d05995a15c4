// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/core/config.h"
#include "torch_openreg/common/openreg/core/handle_table.h"
#include "torch_openreg/common/openreg/execution/command_queue.h"
#include "torch_openreg/common/openreg/execution/device.h"
#include "torch_openreg/common/openreg/execution/event.h"
#include "torch_openreg/common/openreg/guards/guards.h"
#include "torch_openreg/common/openreg/memory/memory.h"

#include <memory>
#include <vector>

namespace openreg::hardware {

// [common.machine] The machine owns all devices, their memory, and the tables of handles.
struct Machine {
  Machine();

  Memory memory;
  Guards guards;
  std::vector<std::unique_ptr<Device>> devices;
  HandleTable<CommandQueue, orStream_t> streams;
  HandleTable<Event, orEvent_t> events;
};

/// Starts the machine when it is first called. It is never destroyed, because
/// its threads outlive every destructor.
Machine& machine();

// [common.machine.wait] A thread of the device that waited for the device would wait for itself.
/// Every function of the interface that waits asks this first.
/// @throws orErrorNotPermitted on a thread of a device,
/// orErrorStreamCaptureUnsupported during a capture that forbids `function`.
void checkMayWait(const char* function);

/// Waits for all commands of all devices.
void synchronizeAll();

// [common.machine.check] Every call checks the machine before it does anything.
/// Refuses a configuration that is not valid, or names no device.
void checkConfiguration();

/// Refuses calls in a forked child, where a lock may be held by a thread that
/// does not exist there.
void checkNotForked();

/// Refuses calls in a forked child and under a wrong configuration, and starts
/// the devices otherwise.
void enter();

/// What a function of the interface returns that starts no device, and then
/// runs `body()`.
template <class Body>
orError_t unforked(Body body) noexcept {
  return caught([&] {
    checkNotForked();
    return body();
  });
}

/// What a function of the interface returns that enters the machine, and then
/// runs `body()`.
template <class Body>
orError_t guarded(Body body) noexcept {
  return caught([&] {
    enter();
    return body();
  });
}

// [-]
}  // namespace openreg::hardware
