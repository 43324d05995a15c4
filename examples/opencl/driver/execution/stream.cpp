// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/opencl/driver/execution/stream.h"

#include "torch_openreg/examples/opencl/driver/core/config.h"
#include "torch_openreg/examples/opencl/driver/core/machine.h"

#include <utility>

namespace openreg::hardware {

// [opencl.stream.look-up] The handle is compared again under the lock, because another thread may destroy the stream.
LockedStream findStream(orStream_t handle) {
  if (!handle) handle = current().defaultStream();
  Stream* stream = handle ? machine().streams.find(handle) : nullptr;
  if (stream) {
    LockedStream locked{stream, std::unique_lock(stream->mutex)};
    if (stream->handle == handle) return locked;
  }
  refuseStream(handle);
  return {};
}

// [opencl.stream.enqueue] A host that runs ahead waits for an older command, because queued commands take memory.
constexpr uint64_t kHalfOfBound = 2048;

orError_t submit(LockedStream stream, const char* call, const Enqueue& enqueue,
                 EventRef* command) {
  Device& device = *stream->device;
  if (orError_t error = device.report()) return error;
  cl_event event = nullptr;
  const cl_int code = enqueue(stream->queue.get(), &event);
  if (code != CL_SUCCESS) {
    if (code != CL_DEVICE_NOT_AVAILABLE) return checkCl(code, call);
    device.stop(code);
    return device.report();
  }
  stream->last = adopt(event);
  clFlush(stream->queue.get());
  if (command) *command = stream->last;
  EventRef awaited = config().blocking ? stream->last : nullptr;
  if (++stream->commands % kHalfOfBound == 0) {
    EventRef before = std::exchange(stream->milestone, stream->last);
    if (!awaited) awaited = std::move(before);
  }
  stream.lock.unlock();
  if (!awaited || onHostFunctionThread()) return orSuccess;
  return waitFor(device, awaited);
}

orError_t submit(orStream_t handle, const char* call, const Enqueue& enqueue,
                 EventRef* command) {
  LockedStream stream = findStream(handle);
  if (!stream) return orErrorInvalidResourceHandle;
  return submit(std::move(stream), call, enqueue, command);
}

// [opencl.stream.wait] A negative status means that the command failed, which stops the device.
static cl_int statusOf(const EventRef& event) {
  cl_int status = CL_COMPLETE;
  if (event) {
    clGetEventInfo(event.get(), CL_EVENT_COMMAND_EXECUTION_STATUS,
                   sizeof(status), &status, nullptr);
  }
  return status;
}

bool isComplete(const EventRef& event) { return statusOf(event) <= 0; }

orError_t waitFor(Device& device, const EventRef& event) {
  if (event) {
    const cl_event waited = event.get();
    const cl_int code = clWaitForEvents(1, &waited);
    const cl_int status = statusOf(event);
    if (status < 0) {
      device.stop(status);
    } else if (code != CL_SUCCESS) {
      device.stop(code);
    }
  }
  return device.report();
}

// [-]
}  // namespace openreg::hardware
