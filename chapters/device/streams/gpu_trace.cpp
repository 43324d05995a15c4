// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/streams/gpu_trace.h"

#include <atomic>
#include <thread>

namespace openreg {

// [device.trace.end] A thread that waits for Python's lock while Python shuts down is ended, and with it the process.
static constinit std::atomic<bool> has_ended{false};
static constinit std::atomic<int> under_way{0};
static thread_local int under_way_here = 0;

Tracing::Tracing() noexcept : is_on((++under_way, !has_ended)) {
  ++under_way_here;
}

Tracing::~Tracing() {
  --under_way_here;
  --under_way;
}

void endTrace() noexcept {
  const WithoutGil others_run;
  has_ended = true;
  while (under_way > under_way_here) std::this_thread::yield();
}

// [-]
}  // namespace openreg
