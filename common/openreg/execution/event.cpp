// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/execution/event.h"

#include "torch_openreg/common/openreg/execution/device.h"

namespace openreg::hardware {

// [common.event.complete] The clock is read before anything is woken.
void Recording::complete() {
  CommandQueue::List waiting;
  {
    std::lock_guard lock(mutex);
    time = std::chrono::steady_clock::now();
    completed = true;
    waiting.swap(parked);
  }
  if (host_waits) device->host_waiters.wake([] {});
  while (!waiting.empty()) {
    CommandQueue* queue = CommandQueue::leave(waiting, waiting.begin());
    queue->device().workers.makeReady(queue);
  }
}

// [common.event.park] A stream that waits for an event occupies no thread.
bool Recording::park(CommandQueue* queue) {
  std::lock_guard lock(mutex);
  if (completed.load()) return false;
  queue->enter(parked);
  return true;
}

bool Recording::synchronize() {
  return device->host_waiters.waitUntil([&] { return completed.load(); },
                                        [&] { host_waits = true; },
                                        /*calls_back=*/true);
}

// [-]
}  // namespace openreg::hardware
