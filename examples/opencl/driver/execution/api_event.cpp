// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/opencl/driver/core/machine.h"

using namespace openreg::hardware;

namespace {

// [opencl.api-event.find] The state of an event is copied, so that waiting does not hold its lock.
struct LockedEvent {
  Event* event = nullptr;
  std::unique_lock<std::mutex> lock;

  explicit operator bool() const { return event; }
  Event* operator->() const { return event; }
};

LockedEvent findEvent(orEvent_t handle) {
  if (Event* event = machine().events.find(handle)) {
    LockedEvent locked{event, std::unique_lock(event->mutex)};
    if (event->handle == handle) return locked;
  }
  refuseEvent(handle);
  return {};
}

struct Snapshot {
  bool found = false;
  bool timed = false;
  Device* device = nullptr;
  EventRef latest;
};

Snapshot snapshot(orEvent_t handle) {
  const LockedEvent event = findEvent(handle);
  if (!event) return {};
  return {true, event->timed, event->device, event->latest};
}

}  // namespace

// [opencl.api-event.create] An event belongs to the device of its first recording.
orError_t orEventCreate(orEvent_t* handle) noexcept {
  return orEventCreateWithFlags(handle, orEventEnableTiming);
}

orError_t orEventCreateWithFlags(orEvent_t* handle, unsigned int flags) noexcept
    try {
  if (orError_t error = enter()) return error;
  if (!handle) return refuseNull(__func__);
  if (flags > orEventEnableTiming) {
    return fail(orErrorInvalidValue, "An event has the flags 0 or 1 (timing); ",
                flags, " was given.");
  }
  auto [ticket, event] = machine().events.create("events");
  std::lock_guard lock(event->mutex);
  event->handle = ticket;
  event->timed = flags == orEventEnableTiming;
  event->device = nullptr;
  event->latest = nullptr;
  *handle = ticket;
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [opencl.api-event.destroy] A marker lives as long as a stream waits for it.
orError_t orEventDestroy(orEvent_t handle) noexcept try {
  if (orError_t error = enter()) return error;
  {
    const LockedEvent event = findEvent(handle);
    if (!event) return orErrorInvalidResourceHandle;
    event->handle = nullptr;
    event->latest = nullptr;
  }
  machine().events.recycle(handle);
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [opencl.api-event.record] Recording enqueues a marker; streams that wait for the previous marker keep it.
orError_t orEventRecord(orEvent_t event_handle,
                        orStream_t stream_handle) noexcept try {
  if (orError_t error = enter()) return error;
  LockedEvent event = findEvent(event_handle);
  if (!event) return orErrorInvalidResourceHandle;
  LockedStream stream = findStream(stream_handle);
  if (!stream) return orErrorInvalidResourceHandle;
  Device* device = stream->device;
  if (event->device && event->device != device) {
    return fail(orErrorInvalidValue,
                "The event was recorded on openreg:", event->device->index,
                ", the stream is on openreg:", device->index,
                "; they must be of one device.");
  }
  EventRef marker;
  orError_t error = submit(
      std::move(stream), "clEnqueueMarkerWithWaitList",
      [](cl_command_queue queue, cl_event* out) {
        return clEnqueueMarkerWithWaitList(queue, 0, nullptr, out);
      },
      &marker);
  if (error) return error;
  event->device = device;
  event->latest = std::move(marker);
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [opencl.api-event.wait] Waiting enqueues a barrier, which OpenCL holds until the marker is reached, on any device of the context.
orError_t orStreamWaitEvent(orStream_t stream_handle, orEvent_t event_handle,
                            unsigned int flags) noexcept try {
  if (orError_t error = enter()) return error;
  if (flags) {
    return fail(orErrorInvalidValue, "Waiting for an event has no flags; ",
                flags, " was given, it must be 0.");
  }
  const Snapshot event = snapshot(event_handle);
  if (!event.found) return orErrorInvalidResourceHandle;
  LockedStream stream = findStream(stream_handle);
  if (!stream) return orErrorInvalidResourceHandle;
  if (isComplete(event.latest)) return orSuccess;
  const cl_event awaited = event.latest.get();
  return submit(std::move(stream), "clEnqueueBarrierWithWaitList",
                [&](cl_command_queue queue, cl_event* out) {
                  return clEnqueueBarrierWithWaitList(queue, 1, &awaited, out);
                });
} catch (...) {
  return failWithException();
}

// [opencl.api-event.query] An event that was never recorded is complete.
orError_t orEventQuery(orEvent_t handle) noexcept try {
  if (orError_t error = enter()) return error;
  const Snapshot event = snapshot(handle);
  if (!event.found) return orErrorInvalidResourceHandle;
  if (!event.latest) return orSuccess;
  if (!isComplete(event.latest)) return orErrorNotReady;
  return waitFor(*event.device, event.latest);
} catch (...) {
  return failWithException();
}

orError_t orEventSynchronize(orEvent_t handle) noexcept try {
  if (orError_t error = enter()) return error;
  if (orError_t error = checkMayWait()) return error;
  const Snapshot event = snapshot(handle);
  if (!event.found) return orErrorInvalidResourceHandle;
  return event.latest ? waitFor(*event.device, event.latest) : orSuccess;
} catch (...) {
  return failWithException();
}

// [opencl.api-event.elapsed] The device's profiling clock reports the times, in nanoseconds.
static cl_ulong endOf(const EventRef& event) {
  cl_ulong time = 0;
  clGetEventProfilingInfo(event.get(), CL_PROFILING_COMMAND_END, sizeof(time),
                          &time, nullptr);
  return time;
}

// [opencl.api-event.between] Both events must be complete, belong to one device, and record times.
orError_t orEventElapsedTime(float* ms, orEvent_t start_handle,
                             orEvent_t end_handle) noexcept try {
  if (orError_t error = enter()) return error;
  if (!ms) return refuseNull(__func__);
  const Snapshot start = snapshot(start_handle);
  const Snapshot end = start.found ? snapshot(end_handle) : Snapshot{};
  if (!end.found) return orErrorInvalidResourceHandle;
  if (!start.timed || !end.timed) {
    return fail(orErrorInvalidValue,
                "Both events need to be created with timing to tell the time "
                "between them.");
  }
  if (!start.latest || !end.latest) {
    return fail(
        orErrorInvalidValue,
        "Both events need to be recorded to tell the time between them.");
  }
  if (start.device != end.device) {
    return refuseTimeBetween(start.device->index, end.device->index);
  }
  if (!isComplete(start.latest) || !isComplete(end.latest)) {
    return fail(orErrorNotReady,
                "Both events must be complete; synchronize the later one.");
  }
  *ms = (static_cast<double>(endOf(end.latest)) -
         static_cast<double>(endOf(start.latest))) /
        1e6;
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [-]
