// SPDX-License-Identifier: BSD-3-Clause
#include "common/openreg/core/failure.h"
#include "common/openreg/core/lookup.h"
#include "common/openreg/execution/enqueue.h"
#include "common/openreg/tools/seeded_scheduler.h"

using namespace openreg::hardware;

namespace {

// [common.api-event.latest] The lock of an event is held only to read its latest recording.
std::shared_ptr<Recording> latest(Event& event) {
  std::lock_guard lock(event.mutex);
  return event.latest;
}

// [-]
}  // namespace

// [common.api-event.create] An event belongs to the device of its first recording.
orError_t orEventCreate(orEvent_t* handle) noexcept {
  return orEventCreateWithFlags(handle, orEventEnableTiming);
}

orError_t orEventCreateWithFlags(orEvent_t* handle, unsigned int flags) noexcept
    try {
  if (orError_t error = enter()) return error;
  if (!handle)
    return fail(orErrorInvalidValue,
                "Creating an event needs a place for its handle, not null.");
  if (flags > orEventEnableTiming) {
    return fail(orErrorInvalidValue, "An event has the flags 0 or 1 (timing); ",
                flags, " was given.");
  }
  auto [ticket, event] = machine().events.create();
  if (!event)
    return fail(orErrorMemoryAllocation,
                "There are too many events: a machine has room for 2^20.");
  std::lock_guard lock(event->mutex);
  event->timed = flags == orEventEnableTiming;
  event->latest = nullptr;
  *handle = ticket;
  return orSuccess;
} catch (...) {
  return failWithException();
}

orError_t orEventDestroy(orEvent_t handle) noexcept try {
  if (orError_t error = enter()) return error;
  if (!findEvent(handle) || !machine().events.retire(handle))
    return orErrorInvalidResourceHandle;
  machine().events.recycle(handle);
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-event.record] Recording again creates a new recording, and leaves the old one to those who wait for it.
orError_t orEventRecord(orEvent_t event_handle,
                        orStream_t stream_handle) noexcept try {
  if (orError_t error = enter()) return error;
  Event* event = findEvent(event_handle);
  CommandQueue* queue = event ? findStream(stream_handle) : nullptr;
  if (!queue) return orErrorInvalidResourceHandle;
  auto recording = std::make_shared<Recording>();
  recording->device = &queue->device();
  std::lock_guard lock(event->mutex);
  if (event->latest && event->latest->device != recording->device) {
    return fail(orErrorInvalidValue, "The event was recorded on openreg:",
                event->latest->device->index,
                ", the stream is on openreg:", recording->device->index,
                "; they must be of one device.");
  }
  orError_t error = enqueue(*queue, [&](Command& command) {
    command.kind = Command::Kind::record;
    command.name = "record";
    command.recording = recording;
  });
  if (!error) event->latest = recording;
  return error;
} catch (...) {
  return failWithException();
}

// [common.api-event.wait] A stream does not wait for a recording that is complete.
orError_t orStreamWaitEvent(orStream_t stream_handle, orEvent_t event_handle,
                            unsigned int flags) noexcept try {
  if (orError_t error = enter()) return error;
  if (flags)
    return fail(orErrorInvalidValue, "Waiting for an event has no flags; ",
                flags, " was given, it must be 0.");
  CommandQueue* queue = findStream(stream_handle);
  Event* event = queue ? findEvent(event_handle) : nullptr;
  if (!event) return orErrorInvalidResourceHandle;
  auto recording = latest(*event);
  if (!recording || recording->completed) return orSuccess;
  return enqueue(*queue, [&](Command& command) {
    command.kind = Command::Kind::wait;
    command.name = "wait";
    command.recording = recording;
  });
} catch (...) {
  return failWithException();
}

// [common.api-event.query] An event that was never recorded is complete, or a wait for it would never end.
orError_t orEventQuery(orEvent_t handle) noexcept try {
  if (orError_t error = enter()) return error;
  Event* event = findEvent(handle);
  if (!event) return orErrorInvalidResourceHandle;
  auto recording = latest(*event);
  if (!recording) return orSuccess;
  if (!recording->completed) stepIfSeeded();
  if (!recording->completed) return orErrorNotReady;
  return recording->device->sticky_error.report();
} catch (...) {
  return failWithException();
}

orError_t orEventSynchronize(orEvent_t handle) noexcept try {
  if (orError_t error = enter()) return error;
  Event* event = findEvent(handle);
  if (!event) return orErrorInvalidResourceHandle;
  auto recording = latest(*event);
  if (!recording) return orSuccess;
  recording->synchronize();
  return recording->device->sticky_error.report();
} catch (...) {
  return failWithException();
}

// [common.api-event.elapsed] The device reads the clock when a recording completes, not the host when it notices.
orError_t orEventElapsedTime(float* ms, orEvent_t start_handle,
                             orEvent_t end_handle) noexcept try {
  if (orError_t error = enter()) return error;
  if (!ms)
    return fail(orErrorInvalidValue,
                "orEventElapsedTime needs a place for the time, not null.");
  Event* start = findEvent(start_handle);
  Event* end = start ? findEvent(end_handle) : nullptr;
  if (!end) return orErrorInvalidResourceHandle;
  if (!start->timed || !end->timed) {
    return fail(orErrorInvalidValue,
                "Both events need to be created with timing to tell the time "
                "between them.");
  }
  auto from = latest(*start), to = latest(*end);
  if (!from || !to)
    return fail(
        orErrorInvalidValue,
        "Both events need to be recorded to tell the time between them.");
  if (from->device != to->device) {
    return fail(orErrorInvalidValue,
                "The events were recorded on openreg:", from->device->index,
                " and openreg:", to->device->index,
                "; there is a time only between two events of one device.");
  }
  if (!from->completed || !to->completed) {
    return fail(orErrorNotReady,
                "Both events must have happened; synchronise the later one.");
  }
  *ms = std::chrono::duration<float, std::milli>(to->time - from->time).count();
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [-]
