// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/streams/gpu_trace.h"

#include <atomic>

namespace openreg {

// [device.trace.end] A thread that asks for Python's lock while Python shuts down is ended, and with it the process.
static constinit std::atomic<bool> has_ended{false};

bool traceHasEnded() noexcept { return has_ended; }

void endTrace() noexcept { has_ended = true; }

// [-]
}  // namespace openreg
