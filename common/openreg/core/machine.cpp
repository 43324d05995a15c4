// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/core/machine.h"

#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/graphs/capture.h"
#include "torch_openreg/common/openreg/races/races.h"

#include <pthread.h>

#include <cstdlib>

namespace openreg::hardware {
// [common.machine.state] The process remembers whether the machine started, and whether it was forked after that.
static std::atomic<bool> started{false};
static std::atomic<bool> forked{false};

// [common.machine.start] Threads do not survive a fork, so a forked child is marked as one.
Machine::Machine()
    : memory(config().device_count, config().device_memory, config().reserve,
             config().guards_memory),
      guards(memory, config().device_count) {
  for (int index = 0; index < config().device_count; ++index) {
    devices.push_back(std::make_unique<Device>(index));
  }
  pthread_atfork(nullptr, nullptr, [] { forked = true; });
  // Called after what is registered next, which may still find races.
  endWithCodeAfterFindings();
  if (config().finds_races) start(kRaces);
  if (config().guards_memory) start(kMemory);
  if (config().ordered) start(kOrder);
  // Work that is enqueued still runs: it may include a copy to the host.
  std::atexit([] {
    try {
      if (forked || onDeviceThread()) return;
      for (auto& device : machine().devices) device->limitWaiting();
      synchronizeAll();
    } catch (...) {
      // At exit no caller is left that could handle the error.
    }
  });
  started = true;
}

Machine& machine() {
  static Machine& machine = *new Machine;
  return machine;
}

// [common.machine.wait-all] The check is of the thread and not of the stream, because streams and devices wait for each other.
void checkMayWait(const char* function) {
  if (onDeviceThread())
    throw fail(orErrorNotPermitted,
               "This call waits for the device, and it was made by a kernel or "
               "a host function, for which the device waits; make it on a "
               "thread of the program.");
  checkMayWaitInCapture(function);
}

void synchronizeAll() {
  for (auto& device : machine().devices) device->synchronize();
}

// [common.machine.enter] A forked child is refused first, and a wrong configuration before the machine starts.
void checkConfiguration() {
  if (!config().problem.empty())
    throw setLastError(orErrorInvalidConfiguration, config().problem);
  if (config().device_count == 0)
    throw fail(orErrorNoDevice, "This machine has no openreg device.");
}

void checkNotForked() {
  if (forked)
    throw fail(orErrorForked,
               "openreg devices were started before this process was forked; "
               "start it with the 'spawn' method instead.");
}

void enter() {
  checkNotForked();
  if (started) return;
  checkConfiguration();
  try {
    machine();
  } catch (const std::exception& error) {
    throw fail(orErrorUnknown, "The devices did not start: ", error.what());
  }
}

// [-]
}  // namespace openreg::hardware

using namespace openreg::hardware;

// [common.machine.api] Two questions about the process start nothing.
orError_t orDeviceIsStarted(int device, int* is_started) noexcept {
  return caught([&] {
    if (!is_started) throw refuseNull("orDeviceIsStarted");
    *is_started =
        started && !forked && device >= 0 && device < config().device_count;
  });
}

int orIsForked() noexcept { return forked; }

// [-]
