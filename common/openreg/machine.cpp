// SPDX-License-Identifier: BSD-3-Clause
#include "machine.h"

#include "error.h"
#include "injection.h"

#include <pthread.h>

#include <cstdlib>

namespace openreg::hardware {
namespace {

// [common.machine.state] Whether it runs, and whether this process only inherited it.
std::atomic<bool> started{false};
std::atomic<bool> forked{false};

// At exit, work that was enqueued still runs: a copy to the host may be in it.
void finish() {
  if (forked) return;
  for (auto& device : machine().devices) device->drainAll();
}

// [-]
}  // namespace

// [common.machine.start] Threads do not survive a fork, so a child must know that it is one.
Machine::Machine() : memory(config().device_count, config().device_memory) {
  for (int index = 0; index < config().device_count; ++index) {
    devices.push_back(std::make_unique<Device>(index));
  }
  pthread_atfork(nullptr, nullptr, [] { forked = true; });
  std::atexit(finish);
  started = true;
}

Machine& machine() {
  static Machine& machine = *new Machine;
  return machine;
}

// [common.machine.usable] Whether there is a machine to speak of.
static orError_t usable() {
  if (!config().problem.empty()) {
    return remember(orErrorInvalidConfiguration, config().problem);
  }
  if (config().device_count == 0) {
    return fail(orErrorNoDevice, "This machine has no openreg device.");
  }
  return orSuccess;
}

// [common.machine.enter] Three reasons why nothing can be asked of a device.
orError_t enter() {
  if (forked) {
    return fail(orErrorForked,
                "openreg devices were started before this process was forked; "
                "start it with the 'spawn' method instead.");
  }
  if (orError_t error = usable()) return error;
  try {
    machine();
    return orSuccess;
  } catch (const std::exception& error) {
    return fail(orErrorUnknown, "The devices did not start: ", error.what());
  }
}

// [common.machine.find] From handles to objects.
int& currentIndex() {
  thread_local int index = 0;
  return index;
}

orError_t checkDevice(int index) {
  if (orError_t error = usable()) return error;
  if (index >= 0 && index < config().device_count) return orSuccess;
  return fail(orErrorInvalidDevice, "openreg:", index,
              " does not exist; this machine has ", config().device_count,
              " openreg devices, numbered from 0.");
}

orError_t checkBlock(const void* pointer, orPointerAttributes* where) {
  *where = machine().memory.attributes(pointer);
  if (where->type == orMemoryTypeDevice && where->pointer == pointer) {
    return orSuccess;
  }
  return fail(orErrorInvalidValue, pointer,
              " is not what orMalloc returned, or was freed before.");
}

Device& current() { return *machine().devices[currentIndex()]; }

// [common.machine.find.handle] A handle that finds nothing says why.
Stream* findStream(orStream_t handle) {
  Stream* stream =
      machine().streams.find(handle ? handle : current().defaultStream());
  if (!stream) {
    fail(orErrorInvalidResourceHandle, "Stream ", handle,
         " does not exist; it was never created, or it is destroyed.");
  }
  return stream;
}

Event* findEvent(orEvent_t handle) {
  Event* event = machine().events.find(handle);
  if (!event) {
    fail(orErrorInvalidResourceHandle, "Event ", handle,
         " does not exist; it was never created, or it is destroyed.");
  }
  return event;
}

// [common.machine.submit] What was ordered to fail is counted here.
orError_t submit(orStream_t handle, const orKernel* kernel, const char* name,
                 void* arguments, const char* fault) {
  Stream* stream = findStream(handle);
  if (!stream) return orErrorInvalidResourceHandle;
  Device& device = stream->device();
  if (injection().atCommandOf(device.index())) device.lose();
  return enqueue(*stream, [&](Command& command) {
    command.kind = Command::Kind::kernel;
    command.kernel = kernel;
    command.name = name;
    command.fault = fault;
    kernel->move(command.arguments, arguments);
  });
}

void progress() {
  if (config().seeded) lottery().step();
}

// [-]
}  // namespace openreg::hardware

using namespace openreg::hardware;

// [common.machine.api] Devices, from outside. Counting and choosing start nothing.
orError_t orGetDeviceCount(int* count) {
  if (!count)
    return fail(orErrorInvalidValue,
                "orGetDeviceCount needs a place for the count, not null.");
  if (!config().problem.empty()) {
    return remember(orErrorInvalidConfiguration, config().problem);
  }
  *count = config().device_count;
  return orSuccess;
}

orError_t orGetDevice(int* device) {
  if (!device)
    return fail(orErrorInvalidValue,
                "orGetDevice needs a place for the number, not null.");
  *device = currentIndex();
  return orSuccess;
}

orError_t orSetDevice(int device) {
  if (orError_t error = checkDevice(device)) return error;
  currentIndex() = device;
  return orSuccess;
}

// [common.machine.api.started] Two questions about the process.
orError_t orDeviceIsStarted(int device, int* is_started) {
  if (!is_started)
    return fail(orErrorInvalidValue,
                "orDeviceIsStarted needs a place for the answer, not null.");
  *is_started =
      started && !forked && device >= 0 && device < config().device_count;
  return orSuccess;
}

int orIsForked() { return forked; }

// [common.machine.api.properties] What the machine says of itself.
orError_t orDriverGetVersion(int* version) {
  if (!version) {
    return fail(orErrorInvalidValue,
                "orDriverGetVersion needs a place for the number, not null.");
  }
  *version = 1000;
  return orSuccess;
}

orError_t orGetDeviceProperties(orDeviceProp* properties, int device) {
  if (!properties) {
    return fail(orErrorInvalidValue,
                "orGetDeviceProperties needs a place for them, not null.");
  }
  if (orError_t error = checkDevice(device)) return error;
  *properties = {"openreg, a simulated device", config().device_memory,
                 config().device_threads, Region::kAlignment};
  return orSuccess;
}

// [common.machine.api.synchronize] Waiting for everything, and beginning anew.
orError_t orDeviceSynchronize() {
  if (orError_t error = enter()) return error;
  current().drainAll();
  return current().health();
}

orError_t orDeviceReset() {
  if (orError_t error = enter()) return error;
  return current().reset();
}

orError_t orDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (!least || !greatest) {
    return fail(orErrorInvalidValue,
                "orDeviceGetStreamPriorityRange needs two places, not null.");
  }
  *least = kLeastPriority;
  *greatest = kGreatestPriority;
  return orSuccess;
}

// [-]
