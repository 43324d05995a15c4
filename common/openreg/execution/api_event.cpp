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
/// What is known of an event at one moment.
struct Snapshot {
  bool timed = false;
  std::shared_ptr<Recording> latest;
};

Snapshot snapshot(orEvent_t handle) {
  const LockedEvent event = findEvent(handle);
  return {event->timed, event->latest};
}

// [-]
}  // namespace

// [common.api-event.create] An event belongs to the device of its first recording.
orError_t orEventCreate(orEvent_t* handle) noexcept {
  return orEventCreateWithFlags(handle, orEventEnableTiming);
}

orError_t orEventCreateWithFlags(orEvent_t* handle,
                                 unsigned int flags) noexcept {
  return guarded([&] {
    if (!handle) throw refuseNull("orEventCreateWithFlags");
    if (flags > orEventEnableTiming) {
      throw fail(orErrorInvalidValue,
                 "An event has the flags 0 or 1 (timing); ", flags,
                 " was given.");
    }
    countCreation("an event");
    auto [ticket, event] = machine().events.create("events");
    std::lock_guard lock(event->mutex);
    event->handle = ticket;
    event->timed = flags == orEventEnableTiming;
    event->latest = nullptr;
    *handle = ticket;
  });
}

// [common.api-event.destroy] Destroying an event drops its recording; whatever waits for the recording holds it.
orError_t orEventDestroy(orEvent_t handle) noexcept {
  return guarded([&] {
    {
      const LockedEvent event = findEvent(handle);
      event->handle = nullptr;
      event->latest = nullptr;
    }
    machine().events.recycle(handle);
  });
}

// [common.api-event.record] Recording again creates a new recording, and leaves the old one to those who wait for it.
orError_t orEventRecord(orEvent_t event_handle,
                        orStream_t stream_handle) noexcept {
  return caught([&] {
    ObservedCall call("orEventRecord", orOperationRecord);
    enter();
    auto recording = std::make_shared<Recording>();
    LockedEvent event = findEvent(event_handle);
    const StreamRef stream = findStream(stream_handle);
    const auto fill = [&](Command& command, Device& device) {
      if (event->latest && event->latest->device != &device)
        throw fail(orErrorInvalidValue, "The event was recorded on openreg:",
                   event->latest->device->index,
                   ", the stream is on openreg:", device.index,
                   "; they must be of one device.");
      device.admit();
      recording->device = &device;
      command.kind = Command::Kind::record;
      command.name = "record";
      command.recording = recording;
    };
    // Observers and waiting for room may take long, and a query must not wait
    // for it.
    const auto enqueued = [&] {
      event->latest = std::move(recording);
      event.lock.unlock();
    };
    const Position position =
        stream.queue->push(stream.handle, 0, fill, enqueued);
    holdBack(stream, position);
  });
}

// [common.api-event.wait] A stream does not wait for a recording that is complete, unless a refusal comes with it.
orError_t orStreamWaitEvent(orStream_t stream_handle, orEvent_t event_handle,
                            unsigned int flags) noexcept {
  return caught([&] {
    ObservedCall call("orStreamWaitEvent", orOperationWait);
    enter();
    if (flags)
      throw fail(orErrorInvalidValue, "Waiting for an event has no flags; ",
                 flags, " was given, it must be 0.");
    const StreamRef stream = findStream(stream_handle);
    const auto recording = snapshot(event_handle).latest;
    if (recording && recording->capture)
      return recording->capture->join(stream, *recording);
    const bool is_captured = captureOf(stream) != nullptr;
    if (!recording || (recording->isSettled() && !is_captured)) {
      if (recording && racesAreWanted())
        races().wait(stream.handle, *recording);
      return stream.check();
    }
    const auto fill = [&](Command& command, Device& device) {
      device.admit();
      command.kind = Command::Kind::wait;
      command.name = "wait";
      command.recording = recording;
    };
    holdBack(stream, stream.queue->push(stream.handle, 0, fill));
  });
}

// [common.api-event.query] An event that was never recorded is complete, or a wait for it would never end.
static orError_t reportTo(Recording& recording) {
  if (racesAreWanted()) races().hostWaited(recording);
  recording.device->sticky_error.report();
  recording.refusal.tell();
  return orSuccess;
}

orError_t orEventQuery(orEvent_t handle) noexcept {
  return guarded([&] {
    const auto recording = snapshot(handle).latest;
    if (!recording) return orSuccess;
    checkNotCaptured(*recording, "orEventQuery");
    // A schedule that is chosen may want what completed to come later.
    if (!recording->completed || racesAreWanted()) {
      pollIfHeld("orEventQuery", recording->clock,
                 [&] { return recording->completed.load(); });
    }
    return recording->completed ? reportTo(*recording) : orErrorNotReady;
  });
}

orError_t orEventSynchronize(orEvent_t handle) noexcept {
  return caught([&] {
    ObservedCall call("orEventSynchronize", orOperationSynchronize);
    enter();
    checkMayWait("orEventSynchronize");
    const auto recording = snapshot(handle).latest;
    if (!recording) return orSuccess;
    checkNotCaptured(*recording, "orEventSynchronize");
    return recording->synchronize() ? reportTo(*recording) : orErrorNotReady;
  });
}

// [common.api-event.elapsed] The device reads the clock when a recording completes, not the host when it notices.
orError_t orEventElapsedTime(float* ms, orEvent_t start_handle,
                             orEvent_t end_handle) noexcept {
  return guarded([&] {
    if (!ms) throw refuseNull("orEventElapsedTime");
    const Snapshot start = snapshot(start_handle);
    const Snapshot end = snapshot(end_handle);
    if (!start.timed || !end.timed) {
      throw fail(orErrorInvalidValue,
                 "Both events need to be created with timing to tell the time "
                 "between them.");
    }
    const auto &from = start.latest, &to = end.latest;
    if (!from || !to)
      throw fail(
          orErrorInvalidValue,
          "Both events need to be recorded to tell the time between them.");
    for (const auto& recording : {from, to}) {
      checkNotCaptured(*recording, "orEventElapsedTime");
    }
    if (from->device != to->device) {
      throw refuseTimeBetween(from->device->index, to->device->index);
    }
    if (!from->completed || !to->completed) {
      throw fail(orErrorNotReady,
                 "Both events must be complete; synchronize the later one.");
    }
    *ms =
        std::chrono::duration<float, std::milli>(to->time - from->time).count();
  });
}

// [-]
