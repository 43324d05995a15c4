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
/// @returns orErrorNotPermitted on a thread of a device,
/// orErrorStreamCaptureUnsupported during a capture that forbids `function`.
orError_t checkMayWait(const char* function = __builtin_FUNCTION());

/// Waits for all commands of all devices.
void synchronizeAll();

// [common.machine.check] Every call checks the machine before it does anything.
/// orSuccess if the configuration is valid and names at least one device.
orError_t checkConfiguration();

/// Refuses calls in a forked child and under a wrong configuration, and starts
/// the devices otherwise.
orError_t enter();

// [-]
}  // namespace openreg::hardware
