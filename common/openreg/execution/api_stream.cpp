// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/core/lookup.h"
#include "torch_openreg/common/openreg/execution/enqueue.h"
#include "torch_openreg/common/openreg/graphs/capture.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/races/races.h"
#include "torch_openreg/common/openreg/tools/injection.h"
#include "torch_openreg/common/openreg/tools/observer.h"
#include "torch_openreg/common/openreg/tools/step_scheduler.h"

#include <algorithm>

using namespace openreg::hardware;

// [common.api-stream.create] A priority out of range is clamped and not refused, as in CUDA.
orError_t orStreamCreate(orStream_t* handle) noexcept {
  return orStreamCreateWithPriority(handle, 0, kLeastPriority);
}

orError_t orStreamCreateWithPriority(orStream_t* handle, unsigned int flags,
                                     int priority) noexcept {
  return guarded([&] {
    if (!handle) throw refuseNull("orStreamCreateWithPriority");
    if (flags)
      throw fail(orErrorInvalidValue, "A stream has no flags; ", flags,
                 " was given, it must be 0.");
    countCreation("a stream");
    *handle = current().createStream(
        std::clamp(priority, kGreatestPriority, kLeastPriority));
  });
}

// [common.api-stream.properties] A stream has a device of its own, whichever device is current.
orError_t orStreamGetPriority(orStream_t handle, int* priority) noexcept {
  return guarded([&] {
    if (!priority) throw refuseNull("orStreamGetPriority");
    *priority = findStream(handle).position().priority;
  });
}

orError_t orStreamGetDevice(orStream_t handle, int* device) noexcept {
  return guarded([&] {
    if (!device) throw refuseNull("orStreamGetDevice");
    *device = findStream(handle).position().device->index;
  });
}

// [common.api-stream.query] A query compares two counters, and waits for nothing. What is done is reported as by a wait.
orError_t orStreamQuery(orStream_t handle) noexcept {
  return guarded([&] {
    const StreamRef stream = findStream(handle);
    checkNotCaptured(stream, "orStreamQuery");
    pollIfHeld("orStreamQuery",
               config().ordered ? races().clockOf(stream.handle) : Clock{},
               [&] {
                 const Position now = stream.position();
                 return now.completed == now.submitted;
               });
    const Position position = stream.position();
    // First, because the commands that a failed device drops count as well, and
    // until then one of them may be running.
    if (position.completed < position.submitted) return orErrorNotReady;
    if (racesAreWanted()) races().hostWaited(stream.handle);
    report(stream, position);
    return orSuccess;
  });
}

orError_t orDeviceGetDefaultStream(orStream_t* handle, int device) noexcept {
  return guarded([&] {
    if (!handle) throw refuseNull("orDeviceGetDefaultStream");
    checkDevice(device);
    *handle = machine().devices[device]->defaultStream();
  });
}

// [common.api-stream.wait] Synchronizing a stream reports the sticky error of its device.
orError_t orStreamSynchronize(orStream_t handle) noexcept {
  return caught([&] {
    ObservedCall call("orStreamSynchronize", orOperationSynchronize);
    enter();
    checkMayWait("orStreamSynchronize");
    const StreamRef stream = findStream(handle);
    checkNotCaptured(stream, "orStreamSynchronize");
    return waitFor(stream, stream.position());
  });
}

// [common.api-stream.destroy] The default stream cannot be destroyed, and of two threads that destroy a stream one succeeds.
orError_t orStreamDestroy(orStream_t handle) noexcept {
  return guarded([&] {
    const StreamRef stream = findStream(handle);
    if (stream.handle == stream.position().device->defaultStream()) {
      throw fail(orErrorInvalidResourceHandle,
                 "The default stream cannot be destroyed.");
    }
    if (stream.queue->close(handle)) return;
    checkNotCaptured(stream, "orStreamDestroy");
    throw refuseStream(handle);
  });
}

// [common.api-stream.host] A host function is a kernel that calls it.
orError_t orLaunchHostFunc(orStream_t handle, void (*function)(void*),
                           void* data) noexcept {
  return caught([&] {
    ObservedCall call("orLaunchHostFunc", orOperationHostFunction);
    if (!function) {
      throw fail(orErrorInvalidValue,
                 "orLaunchHostFunc needs a function, not null.");
    }
    forgetAnnounced();
    enter();
    auto body = [function, data] { function(data); };
    // An error must mean that the function was not called and never will be.
    submit(handle, &openreg::KernelOf<decltype(body)>::kernel, "host function",
           &body, injection().launchFault(), /*tells=*/false);
  });
}

// [-]
