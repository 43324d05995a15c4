// SPDX-License-Identifier: BSD-3-Clause
#include "common/openreg/execution/enqueue.h"

#include "common/openreg/core/lookup.h"
#include "common/openreg/tools/injection.h"

namespace openreg::hardware {

// [common.enqueue.submit] The loss of a device is injected at a kernel or copy of it.
orError_t submit(orStream_t handle, const orKernel* kernel, const char* name,
                 void* arguments, const char* fault) {
  CommandQueue* queue = findStream(handle);
  if (!queue) return orErrorInvalidResourceHandle;
  Device& device = queue->device();
  if (injection().losesDevice(device.index)) device.sticky_error.setLost();
  return enqueue(*queue, [&](Command& command) {
    command.kind = Command::Kind::kernel;
    command.kernel = kernel;
    command.name = name;
    command.fault = fault;
    kernel->move(command.arguments, arguments);
  });
}

// [-]
}  // namespace openreg::hardware
