// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/opencl/driver/core/machine.h"

#include "torch_openreg/examples/opencl/driver/core/config.h"

#include <pthread.h>

#include <atomic>
#include <cstdlib>

namespace openreg::hardware {
namespace {

// [opencl.machine.state] The process remembers whether it started the runtime, and whether it was forked after that.
std::atomic<bool> started{false};
std::atomic<bool> forked{false};

// [-]
}  // namespace

// [opencl.machine.start] The runtime starts here, and not when the host counts devices.
Machine::Machine() {
  Survey found;
  const std::vector<cl_device_id> ids = findDevices(&found);
  if (ids.empty()) throw std::runtime_error(found.problem);
  // The sizes may have changed since the survey, and the program knows those.
  if (found.count == survey().count) found = survey();
  cl_int code;
  context = clCreateContext(nullptr, static_cast<cl_uint>(ids.size()),
                            ids.data(), nullptr, nullptr, &code);
  requireCl(code, "clCreateContext");
  std::vector<size_t> sizes;
  for (size_t i = 0; i < ids.size(); ++i) {
    devices.push_back(std::make_unique<Device>());
    devices[i]->index = static_cast<int>(i);
    devices[i]->id = ids[i];
    devices[i]->info = found.devices[i];
    sizes.push_back(found.devices[i].memory);
  }
  memory = std::make_unique<Memory>(context, ids[0], sizes);
  pthread_atfork(nullptr, nullptr, [] { forked = true; });
  // Work that is enqueued still runs: it may include a copy to the host.
  std::atexit([] {
    if (!forked && !onHostFunctionThread()) synchronizeAll();
  });
  started = true;
}

Machine& machine() {
  static Machine& machine = *new Machine;
  return machine;
}

// [opencl.machine.enter] Without a device, the error gives the survey's reason.
orError_t checkConfiguration() {
  if (!config().problem.empty()) {
    return setLastError(orErrorInvalidConfiguration, config().problem);
  }
  if (survey().count == 0)
    return setLastError(orErrorNoDevice, survey().problem);
  return orSuccess;
}

orError_t enter() {
  if (forked) {
    return fail(orErrorForked,
                "openreg devices were started before this process was forked; "
                "start it with the 'spawn' method instead.");
  }
  if (started) return orSuccess;
  if (orError_t error = checkConfiguration()) return error;
  try {
    machine();
    return orSuccess;
  } catch (const std::exception& error) {
    return fail(orErrorUnknown,
                "The OpenCL devices did not start: ", error.what(), ".");
  }
}

orError_t checkMayWait() {
  if (!onHostFunctionThread()) return orSuccess;
  return fail(orErrorNotPermitted,
              "This call waits for the device, and it was made by a host "
              "function, for which the device waits; make it on a thread of "
              "the program.");
}

// [opencl.machine.current] Each thread has a current device, and choosing one starts nothing.
int& currentIndex() {
  thread_local int index = 0;
  return index;
}

Device& current() { return *machine().devices[currentIndex()]; }

orError_t checkDevice(int index) {
  if (orError_t error = checkConfiguration()) return error;
  if (index >= 0 && index < survey().count) return orSuccess;
  return refuseDevice(index, survey().count);
}

void synchronizeAll() {
  for (auto& device : machine().devices) device->synchronize();
}

// [-]
}  // namespace openreg::hardware

using namespace openreg::hardware;

// [opencl.machine.api] Two questions about the process start nothing.
orError_t orDeviceIsStarted(int device, int* is_started) noexcept try {
  if (!is_started) return refuseNull(__func__);
  *is_started = started && !forked && device >= 0 && device < survey().count;
  return orSuccess;
} catch (...) {
  return failWithException();
}

int orIsForked() noexcept { return forked; }

// [-]
