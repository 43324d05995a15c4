// SPDX-License-Identifier: BSD-3-Clause
#include "error.h"
#include "machine.h"

using namespace openreg::hardware;

namespace {

// [common.api-event.latest] An event is as good as what it recorded last.
std::shared_ptr<Recording> latest(Event& event) {
  std::lock_guard lock(event.mutex);
  return event.latest;
}

// [-]
}  // namespace

// [common.api-event.create] An event belongs to no device until it is recorded.
orError_t orEventCreate(orEvent_t* handle) {
  return orEventCreateWithFlags(handle, orEventEnableTiming);
}

orError_t orEventCreateWithFlags(orEvent_t* handle, unsigned int flags) {
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
}

orError_t orEventDestroy(orEvent_t handle) {
  if (orError_t error = enter()) return error;
  if (!findEvent(handle) || !machine().events.retire(handle))
    return orErrorInvalidResourceHandle;
  machine().events.recycle(handle);
  return orSuccess;
}

// [common.api-event.record] Each recording is a new mark; who waits for the old one keeps it.
orError_t orEventRecord(orEvent_t event_handle, orStream_t stream_handle) {
  if (orError_t error = enter()) return error;
  Event* event = findEvent(event_handle);
  Stream* stream = event ? findStream(stream_handle) : nullptr;
  if (!stream) return orErrorInvalidResourceHandle;
  auto mark = std::make_shared<Recording>();
  mark->device = &stream->device();
  std::lock_guard lock(event->mutex);
  if (event->latest && event->latest->device != mark->device) {
    return fail(orErrorInvalidValue, "The event was recorded on openreg:",
                event->latest->device->index(),
                ", the stream is on openreg:", mark->device->index(),
                "; they must be of one device.");
  }
  orError_t error = enqueue(*stream, [&](Command& command) {
    command.kind = Command::Kind::record;
    command.name = "record";
    command.recording = mark;
  });
  if (!error) event->latest = mark;
  return error;
}

// [common.api-event.block] What has happened already makes nobody wait.
orError_t orStreamWaitEvent(orStream_t stream_handle, orEvent_t event_handle,
                            unsigned int flags) {
  if (orError_t error = enter()) return error;
  if (flags)
    return fail(orErrorInvalidValue, "Waiting for an event has no flags; ",
                flags, " was given, it must be 0.");
  Stream* stream = findStream(stream_handle);
  Event* event = stream ? findEvent(event_handle) : nullptr;
  if (!event) return orErrorInvalidResourceHandle;
  auto mark = latest(*event);
  if (!mark || mark->happened) return orSuccess;
  return enqueue(*stream, [&](Command& command) {
    command.kind = Command::Kind::wait;
    command.name = "wait";
    command.recording = mark;
  });
}

// [common.api-event.ask] Has it happened? Wait until it has.
orError_t orEventQuery(orEvent_t handle) {
  if (orError_t error = enter()) return error;
  Event* event = findEvent(handle);
  if (!event) return orErrorInvalidResourceHandle;
  auto mark = latest(*event);
  if (!mark) return orSuccess;
  if (!mark->happened) progress();
  if (!mark->happened) return orErrorNotReady;
  return mark->device->health();
}

orError_t orEventSynchronize(orEvent_t handle) {
  if (orError_t error = enter()) return error;
  Event* event = findEvent(handle);
  if (!event) return orErrorInvalidResourceHandle;
  auto mark = latest(*event);
  if (!mark) return orSuccess;
  mark->device->await(*mark);
  return mark->device->health();
}

// [common.api-event.elapsed] The time between two marks, by the device's own clock.
orError_t orEventElapsedTime(float* ms, orEvent_t start_handle,
                             orEvent_t end_handle) {
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
                "The events were recorded on openreg:", from->device->index(),
                " and openreg:", to->device->index(),
                "; there is a time only between two events of one device.");
  }
  if (!from->happened || !to->happened) {
    return fail(orErrorNotReady,
                "Both events must have happened; synchronise the later one.");
  }
  *ms = std::chrono::duration<float, std::milli>(to->time - from->time).count();
  return orSuccess;
}

// [-]
