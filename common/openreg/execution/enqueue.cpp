// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/execution/enqueue.h"

#include "torch_openreg/common/openreg/core/lookup.h"
#include "torch_openreg/common/openreg/races/races.h"
#include "torch_openreg/common/openreg/tools/injection.h"
#include "torch_openreg/common/openreg/tools/observer.h"

namespace openreg::hardware {

// [common.enqueue.told] A call that has waited for a stream reports the error of its device, or what a kernel refused.
void report(const StreamRef& stream, const Position& position) {
  position.device->sticky_error.report();
  stream.queue->tellRefusal(stream.handle);
}

// [common.enqueue.hold-back] A host that runs ahead is held back after its command is enqueued, when it holds no lock.
void holdBack(const StreamRef& stream, const Position& position, bool tells) {
  // A thread of the device would wait for itself.
  if (onDeviceThread()) return;
  const uint64_t number = position.submitted;
  if (config().blocking) {
    // This very thread may have to make the call that writes the number.
    position.device->runUntilNumber(*stream.queue, number);
    if (tells) report(stream, position);
    return;
  }
  // Without a bound a host that runs ahead would fill its memory with commands.
  // Reading the device's counter is expensive, so it is read now and then.
  constexpr uint64_t kMaxPending = 4096;
  if (number % 256 == 0 && number > stream.queue->completed() + kMaxPending) {
    position.device->synchronize(*stream.queue, number - kMaxPending);
  }
}

// [common.enqueue.wait] A callback may end the wait.
orError_t waitFor(const StreamRef& stream, const Position& position) {
  Device& device = *position.device;
  if (!device.synchronize(*stream.queue, position.submitted,
                          /*calls_back=*/true)) {
    return orErrorNotReady;
  }
  if (racesAreWanted()) races().hostWaited(stream.handle);
  report(stream, position);
  return orSuccess;
}

// [common.enqueue.submit] The loss of a device is injected at a kernel or copy of it.
Position submit(orStream_t handle, const orKernel* kernel, const char* name,
                void* arguments, const char* fault, bool tells) {
  std::shared_ptr<const Launch> launch;
  if (accessesAreWanted()) launch = takeAnnounced(name);
  if (config().guards_memory && !launch) launch = launchHere(name);
  const StreamRef stream = findStream(handle);
  const auto fill = [&](Command& command, Device& device) {
    if (injection().losesDevice(device.index)) device.sticky_error.setLost();
    device.admit();
    kernel->move(command.arguments(), arguments);
    command.kernel = kernel;  // From now on, the arguments are destroyed.
    command.name = name;
    command.fault = fault;
    command.launch = std::move(launch);
  };
  const Position position =
      stream.queue->push(stream.handle, kernel->bytes, fill);
  holdBack(stream, position, tells);
  return position;
}

// [-]
}  // namespace openreg::hardware
