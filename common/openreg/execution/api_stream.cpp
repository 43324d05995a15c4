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
                                     int priority) noexcept try {
  if (orError_t error = enter()) return error;
  if (!handle) return refuseNull(__func__);
  if (flags)
    return fail(orErrorInvalidValue, "A stream has no flags; ", flags,
                " was given, it must be 0.");
  if (orError_t error = countCreation("a stream")) return error;
  *handle = current().createStream(
      std::clamp(priority, kGreatestPriority, kLeastPriority));
  return *handle ? orSuccess : orErrorMemoryAllocation;
} catch (...) {
  return failWithException();
}

// [common.api-stream.properties] A stream has a device of its own, whichever device is current.
orError_t orStreamGetPriority(orStream_t handle, int* priority) noexcept try {
  if (orError_t error = enter()) return error;
  if (!priority) return refuseNull(__func__);
  const Position position = findPosition(handle);
  if (!position.device) return orErrorInvalidResourceHandle;
  *priority = position.priority;
  return orSuccess;
} catch (...) {
  return failWithException();
}

orError_t orStreamGetDevice(orStream_t handle, int* device) noexcept try {
  if (orError_t error = enter()) return error;
  if (!device) return refuseNull(__func__);
  const Position position = findPosition(handle);
  if (!position.device) return orErrorInvalidResourceHandle;
  *device = position.device->index;
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-stream.query] A query compares two counters, and waits for nothing. What is done is reported as by a wait.
orError_t orStreamQuery(orStream_t handle) noexcept try {
  if (orError_t error = enter()) return error;
  const StreamRef stream = findStream(handle);
  if (!stream) return orErrorInvalidResourceHandle;
  if (orError_t error = checkNotCaptured(stream, __func__)) return error;
  pollIfHeld(__func__,
             config().ordered ? races().clockOf(stream.handle) : Clock{}, [&] {
               const Position now = stream.position();
               return now.completed == now.submitted;
             });
  const Position position = stream.position();
  if (!position.device) return orErrorInvalidResourceHandle;
  // First, because the commands that a failed device drops count as well, and
  // until then one of them may be running.
  if (position.completed < position.submitted) return orErrorNotReady;
  if (racesAreWanted()) races().hostWaited(stream.handle);
  return reportTo(stream, position);
} catch (...) {
  return failWithException();
}

orError_t orDeviceGetDefaultStream(orStream_t* handle, int device) noexcept
    try {
  if (orError_t error = enter()) return error;
  if (!handle) return refuseNull(__func__);
  if (orError_t error = checkDevice(device)) return error;
  *handle = machine().devices[device]->defaultStream();
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-stream.wait] Synchronizing a stream reports the sticky error of its device.
orError_t orStreamSynchronize(orStream_t handle) noexcept try {
  ObservedCall call("orStreamSynchronize", orOperationSynchronize);
  if (orError_t error = enter()) return error;
  if (orError_t error = checkMayWait()) return error;
  const StreamRef stream = findStream(handle);
  if (!stream) return orErrorInvalidResourceHandle;
  if (orError_t error = checkNotCaptured(stream, __func__)) return error;
  const Position position = stream.position();
  if (!position.device) return orErrorInvalidResourceHandle;
  return waitFor(stream, position);
} catch (...) {
  return failWithException();
}

// [common.api-stream.destroy] The default stream cannot be destroyed, and of two threads that destroy a stream one succeeds.
orError_t orStreamDestroy(orStream_t handle) noexcept try {
  if (orError_t error = enter()) return error;
  if (!handle)
    return fail(orErrorInvalidResourceHandle,
                "The default stream cannot be destroyed.");
  const StreamRef stream = findStream(handle);
  if (!stream) return orErrorInvalidResourceHandle;
  const Position position = stream.position();
  if (!position.device) return orErrorInvalidResourceHandle;
  if (handle == position.device->defaultStream()) {
    return fail(orErrorInvalidResourceHandle,
                "The default stream cannot be destroyed.");
  }
  if (stream.queue->close(handle)) return orSuccess;
  const orError_t captured = checkNotCaptured(stream, __func__);
  return captured ? captured : refuseStream(handle);
} catch (...) {
  return failWithException();
}

// [common.api-stream.host] A host function is a kernel that calls it.
orError_t orLaunchHostFunc(orStream_t handle, void (*function)(void*),
                           void* data) noexcept try {
  ObservedCall call("orLaunchHostFunc", orOperationHostFunction);
  if (!function) {
    return fail(orErrorInvalidValue,
                "orLaunchHostFunc needs a function, not null.");
  }
  forgetAnnounced();
  if (orError_t error = enter()) return error;
  auto body = [function, data] { function(data); };
  // An error must mean that the function was not called and never will be.
  return submit(handle, &openreg::KernelOf<decltype(body)>::kernel,
                "host function", &body, injection().launchFault(),
                /*position=*/nullptr, /*tells=*/false);
} catch (...) {
  return failWithException();
}

// [-]
