// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/core/lookup.h"
#include "torch_openreg/common/openreg/execution/enqueue.h"
#include "torch_openreg/common/openreg/graphs/capture.h"
#include "torch_openreg/common/openreg/races/races.h"
#include "torch_openreg/common/openreg/tools/injection.h"
#include "torch_openreg/common/openreg/tools/observer.h"
#include "torch_openreg/common/openreg/tools/step_scheduler.h"

using namespace openreg::hardware;

namespace {

// [common.api-event.latest] A thread that waits for an event holds its latest recording, and no lock of the event.
/// What is known of an event at one moment. `found` is false, and the last
/// error set, if there is no such event.
struct Snapshot {
  bool found = false;
  bool timed = false;
  std::shared_ptr<Recording> latest;
};

Snapshot snapshot(orEvent_t handle) {
  const LockedEvent event = findEvent(handle);
  if (!event) return {};
  return {true, event->timed, event->latest};
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
  if (!handle) return refuseNull(__func__);
  if (flags > orEventEnableTiming) {
    return fail(orErrorInvalidValue, "An event has the flags 0 or 1 (timing); ",
                flags, " was given.");
  }
  if (orError_t error = countCreation("an event")) return error;
  auto [ticket, event] = machine().events.create();
  if (!event)
    return fail(orErrorMemoryAllocation,
                "There are too many events: a machine has room for 2^20.");
  std::lock_guard lock(event->mutex);
  event->handle = ticket;
  event->timed = flags == orEventEnableTiming;
  event->latest = nullptr;
  *handle = ticket;
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-event.destroy] Destroying an event drops its recording; whatever waits for the recording holds it.
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

// [common.api-event.record] Recording again creates a new recording, and leaves the old one to those who wait for it.
orError_t orEventRecord(orEvent_t event_handle,
                        orStream_t stream_handle) noexcept try {
  ObservedCall call("orEventRecord", orOperationRecord);
  if (orError_t error = enter()) return error;
  auto recording = std::make_shared<Recording>();
  LockedEvent event = findEvent(event_handle);
  const StreamRef stream = event ? findStream(stream_handle) : StreamRef{};
  if (!stream) return orErrorInvalidResourceHandle;
  const auto check = [&](Device& device) {
    recording->device = &device;
    if (!event->latest || event->latest->device == &device) return orSuccess;
    return fail(orErrorInvalidValue, "The event was recorded on openreg:",
                event->latest->device->index,
                ", the stream is on openreg:", device.index,
                "; they must be of one device.");
  };
  Position position;
  orError_t error = append(stream, &position, 0, check, [&](Command& command) {
    command.kind = Command::Kind::record;
    command.name = "record";
    command.recording = recording;
  });
  if (error) return error;
  event->latest = std::move(recording);
  // Waiting for room may take long, and a query must not wait for it.
  event.lock.unlock();
  return holdBack(stream, position);
} catch (...) {
  return failWithException();
}

// [common.api-event.wait] A stream does not wait for a recording that is complete, unless a refusal comes with it.
orError_t orStreamWaitEvent(orStream_t stream_handle, orEvent_t event_handle,
                            unsigned int flags) noexcept try {
  ObservedCall call("orStreamWaitEvent", orOperationWait);
  if (orError_t error = enter()) return error;
  if (flags)
    return fail(orErrorInvalidValue, "Waiting for an event has no flags; ",
                flags, " was given, it must be 0.");
  const StreamRef stream = findStream(stream_handle);
  if (!stream) return orErrorInvalidResourceHandle;
  const auto [found, timed, recording] = snapshot(event_handle);
  if (!found) return orErrorInvalidResourceHandle;
  if (recording && recording->capture) {
    return recording->capture->join(stream, *recording);
  }
  const bool is_captured = captureOf(stream) != nullptr;
  if (!recording || (recording->isSettled() && !is_captured)) {
    if (recording && racesAreWanted()) races().wait(stream.handle, *recording);
    return stream.position().device ? orSuccess : orErrorInvalidResourceHandle;
  }
  const auto check = [](Device&) { return orSuccess; };
  Position position;
  orError_t error = append(stream, &position, 0, check,
                           [&latest = recording](Command& command) {
                             command.kind = Command::Kind::wait;
                             command.name = "wait";
                             command.recording = latest;
                           });
  return error ? error : holdBack(stream, position);
} catch (...) {
  return failWithException();
}

// [common.api-event.query] An event that was never recorded is complete, or a wait for it would never end.
orError_t orEventQuery(orEvent_t handle) noexcept try {
  if (orError_t error = enter()) return error;
  const auto [found, timed, recording] = snapshot(handle);
  if (!found) return orErrorInvalidResourceHandle;
  if (!recording) return orSuccess;
  if (orError_t error = checkNotCaptured(*recording, __func__)) return error;
  // A schedule that is chosen may want what completed to come later.
  if (!recording->completed || racesAreWanted()) {
    pollIfHeld(__func__, recording->clock,
               [&latest = recording] { return latest->completed.load(); });
  }
  if (!recording->completed) return orErrorNotReady;
  if (racesAreWanted()) races().hostWaited(*recording);
  if (orError_t error = recording->device->sticky_error.report()) return error;
  return recording->refusal.tell();
} catch (...) {
  return failWithException();
}

orError_t orEventSynchronize(orEvent_t handle) noexcept try {
  ObservedCall call("orEventSynchronize", orOperationSynchronize);
  if (orError_t error = enter()) return error;
  if (orError_t error = checkMayWait()) return error;
  const auto [found, timed, recording] = snapshot(handle);
  if (!found) return orErrorInvalidResourceHandle;
  if (!recording) return orSuccess;
  if (orError_t error = checkNotCaptured(*recording, __func__)) return error;
  if (!recording->synchronize()) return orErrorNotReady;
  if (racesAreWanted()) races().hostWaited(*recording);
  if (orError_t error = recording->device->sticky_error.report()) return error;
  return recording->refusal.tell();
} catch (...) {
  return failWithException();
}

// [common.api-event.elapsed] The device reads the clock when a recording completes, not the host when it notices.
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
  const auto &from = start.latest, &to = end.latest;
  if (!from || !to)
    return fail(
        orErrorInvalidValue,
        "Both events need to be recorded to tell the time between them.");
  for (const auto& recording : {from, to}) {
    if (orError_t error = checkNotCaptured(*recording, __func__)) return error;
  }
  if (from->device != to->device) {
    return refuseTimeBetween(from->device->index, to->device->index);
  }
  if (!from->completed || !to->completed) {
    return fail(orErrorNotReady,
                "Both events must have happened; synchronize the later one.");
  }
  *ms = std::chrono::duration<float, std::milli>(to->time - from->time).count();
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [-]
