// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/opencl/driver/core/machine.h"

using namespace openreg::hardware;

// [opencl.api-stream.create] OpenCL 1.2 does not have priorities, so every priority is clamped to 0.
orError_t orStreamCreate(orStream_t* handle) noexcept {
  return orStreamCreateWithPriority(handle, 0, 0);
}

orError_t orStreamCreateWithPriority(orStream_t* handle, unsigned int flags,
                                     int) noexcept try {
  if (orError_t error = enter()) return error;
  if (!handle) return refuseNull(__func__);
  if (flags) {
    return fail(orErrorInvalidValue, "A stream has no flags; ", flags,
                " was given, it must be 0.");
  }
  // The default stream is made first, so that it is never the one asked for.
  current().defaultStream();
  *handle = current().createStream(0);
  return *handle ? orSuccess : orPeekAtLastError();
} catch (...) {
  return failWithException();
}

// [opencl.api-stream.properties] A stream belongs to one device, whichever device is current.
orError_t orStreamGetPriority(orStream_t handle, int* priority) noexcept try {
  if (orError_t error = enter()) return error;
  if (!priority) return refuseNull(__func__);
  const LockedStream stream = findStream(handle);
  if (!stream) return orErrorInvalidResourceHandle;
  *priority = stream->priority;
  return orSuccess;
} catch (...) {
  return failWithException();
}

orError_t orStreamGetDevice(orStream_t handle, int* device) noexcept try {
  if (orError_t error = enter()) return error;
  if (!device) return refuseNull(__func__);
  const LockedStream stream = findStream(handle);
  if (!stream) return orErrorInvalidResourceHandle;
  *device = stream->device->index;
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [opencl.api-stream.captured] Without graphs, no stream is captured.
orError_t orStreamIsCapturing(orStream_t handle,
                              orStreamCaptureStatus* status) noexcept try {
  if (orError_t error = enter()) return error;
  if (!status) return refuseNull(__func__);
  if (!findStream(handle)) return orErrorInvalidResourceHandle;
  *status = orStreamCaptureStatusNone;
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [opencl.api-stream.default] The default stream of a device is created when it is first needed.
orError_t orDeviceGetDefaultStream(orStream_t* handle, int device) noexcept
    try {
  if (orError_t error = enter()) return error;
  if (!handle) return refuseNull(__func__);
  if (orError_t error = checkDevice(device)) return error;
  *handle = machine().devices[device]->defaultStream();
  return *handle ? orSuccess : orPeekAtLastError();
} catch (...) {
  return failWithException();
}

// [opencl.api-stream.wait] A stream is done when its last command is, and the wait does not hold its lock.
orError_t orStreamQuery(orStream_t handle) noexcept try {
  if (orError_t error = enter()) return error;
  const LockedStream stream = findStream(handle);
  if (!stream) return orErrorInvalidResourceHandle;
  if (orError_t error = stream->device->report()) return error;
  if (!isComplete(stream->last)) return orErrorNotReady;
  return waitFor(*stream->device, stream->last);
} catch (...) {
  return failWithException();
}

orError_t orStreamSynchronize(orStream_t handle) noexcept try {
  if (orError_t error = enter()) return error;
  if (orError_t error = checkMayWait()) return error;
  LockedStream stream = findStream(handle);
  if (!stream) return orErrorInvalidResourceHandle;
  Device& device = *stream->device;
  const EventRef last = stream->last;
  stream.lock.unlock();
  return waitFor(device, last);
} catch (...) {
  return failWithException();
}

// [opencl.api-stream.destroy] The host cannot wait for a destroyed queue, so the device keeps the queue's last event.
orError_t orStreamDestroy(orStream_t handle) noexcept try {
  if (orError_t error = enter()) return error;
  LockedStream stream = handle ? findStream(handle) : LockedStream{};
  if (handle && !stream) return orErrorInvalidResourceHandle;
  if (!handle || handle == stream->device->defaultStream()) {
    return fail(orErrorInvalidResourceHandle,
                "The default stream cannot be destroyed.");
  }
  Device& device = *stream->device;
  EventRef last = std::move(stream->last);
  const QueueRef queue = std::move(stream->queue);
  stream->milestone = nullptr;
  stream->last = nullptr;
  stream->handle = nullptr;
  stream.lock.unlock();
  machine().streams.recycle(handle);
  device.addRetired(std::move(last));
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [opencl.api-stream.host] A host function takes a marker, a thread of ours and a barrier.
orError_t orLaunchHostFunc(orStream_t handle, void (*function)(void*),
                           void* data) noexcept try {
  if (!function) {
    return fail(orErrorInvalidValue,
                "orLaunchHostFunc needs a function, not null.");
  }
  if (orError_t error = enter()) return error;
  LockedStream stream = findStream(handle);
  if (!stream) return orErrorInvalidResourceHandle;
  HostFunctions& functions = stream->device->host_functions;
  return submit(std::move(stream), "clEnqueueBarrierWithWaitList",
                [&](cl_command_queue queue, cl_event* event) {
                  return functions.enqueue(machine().context, queue, function,
                                           data, event);
                });
} catch (...) {
  return failWithException();
}

// [-]
