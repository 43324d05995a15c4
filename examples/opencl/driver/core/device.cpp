// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/opencl/driver/core/machine.h"

#include <algorithm>

namespace openreg::hardware {

// [opencl.device.streams] A destroyed stream leaves the event of its last command, and the device still waits for that.
orStream_t Device::defaultStream() {
  std::call_once(once_, [this] { default_stream_ = createStream(0); });
  return default_stream_;
}

orStream_t Device::createStream(int priority) {
  cl_int code;
  const cl_command_queue queue = clCreateCommandQueue(
      machine().context, id, CL_QUEUE_PROFILING_ENABLE, &code);
  if (checkCl(code, "clCreateCommandQueue")) return nullptr;
  QueueRef owned = adopt(queue);
  auto [handle, stream] = machine().streams.create("streams");
  std::scoped_lock lock(stream->mutex, mutex_);
  stream->handle = handle;
  stream->device = this;
  stream->priority = priority;
  stream->queue = std::move(owned);
  streams_.push_back(handle);
  return handle;
}

void Device::addRetired(EventRef last) {
  std::lock_guard lock(mutex_);
  std::erase_if(streams_, [](orStream_t handle) {
    return !machine().streams.find(handle);
  });
  std::erase_if(retired_, isComplete);
  if (last) retired_.push_back(std::move(last));
}

// [opencl.device.synchronize] The device waits for the last command of each stream, without holding a lock.
void Device::synchronize() {
  std::vector<EventRef> events;
  std::vector<orStream_t> handles;
  {
    std::lock_guard lock(mutex_);
    events = retired_;
    handles = streams_;
  }
  for (orStream_t handle : handles) {
    Stream* stream = machine().streams.find(handle);
    if (!stream) continue;
    std::lock_guard lock(stream->mutex);
    if (stream->handle == handle && stream->last) {
      events.push_back(stream->last);
    }
  }
  for (const EventRef& event : events) waitFor(*this, event);
}

// [opencl.device.error] The first failure stays, and only a device that is not lost can be reset.
void Device::stop(cl_int code) {
  std::lock_guard lock(mutex_);
  const bool lost = code == CL_DEVICE_NOT_AVAILABLE;
  if (error_ != orSuccess && !lost) return;
  detail_ = "openreg:" + std::to_string(index);
  detail_ += lost ? " is lost."
                  : " stopped at a command that ended with " +
                        std::string(clErrorName(code)) + " (" +
                        std::to_string(code) + ").";
  error_ = lost ? orErrorDeviceLost : orErrorLaunchFailure;
}

orError_t Device::report() {
  if (error_ == orSuccess) return orSuccess;
  std::lock_guard lock(mutex_);
  return setLastError(error_, detail_);
}

orError_t Device::reset() {
  if (error_ == orErrorDeviceLost) return report();
  error_ = orSuccess;
  return orSuccess;
}

// [-]
}  // namespace openreg::hardware
