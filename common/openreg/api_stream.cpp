// SPDX-License-Identifier: BSD-3-Clause
#include "error.h"
#include "injection.h"
#include "launch.h"
#include "machine.h"

#include <algorithm>

using namespace openreg::hardware;

// [common.api-stream.create] A new stream is never the default one.
orError_t orStreamCreate(orStream_t* handle) {
  return orStreamCreateWithPriority(handle, 0, kLeastPriority);
}

orError_t orStreamCreateWithPriority(orStream_t* handle, unsigned int flags,
                                     int priority) {
  if (orError_t error = enter()) return error;
  if (!handle)
    return fail(orErrorInvalidValue,
                "Creating a stream needs a place for its handle, not null.");
  if (flags)
    return fail(orErrorInvalidValue, "A stream has no flags; ", flags,
                " was given, it must be 0.");
  *handle = current().addStream(
      std::clamp(priority, kGreatestPriority, kLeastPriority));
  if (!*handle)
    return fail(orErrorMemoryAllocation,
                "There are too many streams: a machine has room for 2^20.");
  return orSuccess;
}

// [common.api-stream.ask] What can be asked of a stream.
orError_t orStreamGetPriority(orStream_t handle, int* priority) {
  if (orError_t error = enter()) return error;
  if (!priority)
    return fail(orErrorInvalidValue,
                "orStreamGetPriority needs a place for the answer, not null.");
  Stream* stream = findStream(handle);
  if (!stream) return orErrorInvalidResourceHandle;
  *priority = stream->priority();
  return orSuccess;
}

orError_t orStreamGetDevice(orStream_t handle, int* device) {
  if (orError_t error = enter()) return error;
  if (!device)
    return fail(orErrorInvalidValue,
                "orStreamGetDevice needs a place for the answer, not null.");
  Stream* stream = findStream(handle);
  if (!stream) return orErrorInvalidResourceHandle;
  *device = stream->device().index();
  return orSuccess;
}

// [common.api-stream.query] Whether a stream has work left.
orError_t orStreamQuery(orStream_t handle) {
  if (orError_t error = enter()) return error;
  Stream* stream = findStream(handle);
  if (!stream) return orErrorInvalidResourceHandle;
  if (orError_t error = stream->device().health()) return error;
  progress();
  return stream->completed() < stream->submitted() ? orErrorNotReady
                                                   : orSuccess;
}

orError_t orDeviceGetDefaultStream(orStream_t* handle, int device) {
  if (orError_t error = enter()) return error;
  if (!handle)
    return fail(
        orErrorInvalidValue,
        "orDeviceGetDefaultStream needs a place for the handle, not null.");
  if (orError_t error = checkDevice(device)) return error;
  *handle = machine().devices[device]->defaultStream();
  return orSuccess;
}

// [common.api-stream.wait] Waiting on the host.
orError_t orStreamSynchronize(orStream_t handle) {
  if (orError_t error = enter()) return error;
  Stream* stream = findStream(handle);
  if (!stream) return orErrorInvalidResourceHandle;
  stream->device().drain(*stream);
  return stream->device().health();
}

// [common.api-stream.destroy] The default stream belongs to the device.
orError_t orStreamDestroy(orStream_t handle) {
  if (orError_t error = enter()) return error;
  if (!handle)
    return fail(orErrorInvalidResourceHandle,
                "The default stream cannot be destroyed.");
  Stream* stream = findStream(handle);
  if (stream && handle == stream->device().defaultStream()) {
    return fail(orErrorInvalidResourceHandle,
                "The default stream cannot be destroyed.");
  }
  if (!stream || !machine().streams.retire(handle))
    return orErrorInvalidResourceHandle;
  stream->close();
  return orSuccess;
}

// [common.api-stream.launch] The one way by which a kernel gets into a queue.
orError_t orLaunchCommand(const orKernel* kernel, const char* name,
                          void* arguments, orStream_t handle) {
  if (orError_t error = enter()) return error;
  if (!kernel || kernel->bytes > orMaxArgumentBytes) {
    return fail(orErrorInvalidValue, "A launch needs a kernel with at most ",
                int{orMaxArgumentBytes}, " bytes of arguments.");
  }
  const bool fails = injection().atLaunch();
  return submit(handle, kernel, name ? name : kernel->name, arguments,
                fails ? "a launch was made to fail, by order" : nullptr);
}

// [common.api-stream.host] A function of the host's own, in its place in the queue.
orError_t orLaunchHostFunc(orStream_t handle, void (*function)(void*),
                           void* data) {
  if (!function) {
    return fail(orErrorInvalidValue,
                "orLaunchHostFunc needs a function, not null.");
  }
  return openreg::launch(handle, "host function",
                         [function, data] { function(data); });
}

// [-]
