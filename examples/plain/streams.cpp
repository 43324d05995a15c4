// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/plain/machine.h"

using namespace openreg::hardware;

// [plain.streams] Every stream has the same priority.
orError_t orStreamCreate(orStream_t* stream) noexcept {
  return orStreamCreateWithPriority(stream, 0, 0);
}

orError_t orStreamCreateWithPriority(orStream_t* stream, unsigned int flags,
                                     int) noexcept {
  return guarded([&] {
    if (!stream) return refuseNull("orStreamCreateWithPriority");
    if (flags) {
      return fail(orErrorInvalidValue, "The flags of a stream are ", flags,
                  "; they must be 0.");
    }
    *stream = machine().createStream();
    return orSuccess;
  });
}

// [plain.streams.facts] Asking about a stream is also how its handle is checked.
orError_t orStreamGetPriority(orStream_t stream, int* priority) noexcept {
  return guarded([&] {
    if (!priority) return refuseNull("orStreamGetPriority");
    *priority = 0;
    return machine().with(stream, [](Stream&) { return orSuccess; });
  });
}

orError_t orStreamGetDevice(orStream_t stream, int* device) noexcept {
  return guarded([&] {
    if (!device) return refuseNull("orStreamGetDevice");
    return machine().with(stream, [&](Stream& found) {
      *device = found.device;
      return orSuccess;
    });
  });
}

orError_t orDeviceGetDefaultStream(orStream_t* stream, int device) noexcept {
  return guarded([&] {
    if (!stream) return refuseNull("orDeviceGetDefaultStream");
    if (const orError_t error = checkDevice(device)) return error;
    *stream = Machine::defaultStream(device);
    return orSuccess;
  });
}

orError_t orStreamDestroy(orStream_t stream) noexcept {
  return guarded([&] { return machine().destroy(stream); });
}

// [plain.streams.wait] A stream is idle when its last command has run.
orError_t orStreamQuery(orStream_t stream) noexcept {
  return guarded([&] {
    return machine().with(stream, [](Stream& found) {
      return machine().hasRun(found.last) ? orSuccess : orErrorNotReady;
    });
  });
}

orError_t orStreamSynchronize(orStream_t stream) noexcept {
  return guarded([&] {
    uint64_t last = 0;
    const orError_t error = machine().with(stream, [&](Stream& found) {
      last = found.last;
      return orSuccess;
    });
    return error ? error : machine().wait(last);
  });
}

// [plain.streams.order] A wait for an event is a command that does nothing, because all commands run in one order.
orError_t orStreamWaitEvent(orStream_t stream, orEvent_t event,
                            unsigned int flags) noexcept {
  return guarded([&] {
    if (flags) {
      return fail(orErrorInvalidValue, "The flags of a wait are ", flags,
                  "; they must be 0.");
    }
    const orError_t error =
        machine().with(event, [](Event&) { return orSuccess; });
    return error ? error : machine().enqueue(stream, [] {});
  });
}

orError_t orLaunchHostFunc(orStream_t stream, void (*function)(void*),
                           void* data) noexcept {
  return guarded([&] {
    if (!function) return refuseNull("orLaunchHostFunc");
    return machine().enqueue(stream, [=] { function(data); });
  });
}

// [plain.streams.captured] No stream records its commands, because this driver has no graphs.
orError_t orStreamIsCapturing(orStream_t stream,
                              orStreamCaptureStatus* status) noexcept {
  if (!status) return refuseNull(__func__);
  *status = orStreamCaptureStatusNone;
  int device;
  return orStreamGetDevice(stream, &device);
}

// [plain.events] An event is the number of a command, and the time at which it ran.
orError_t orEventCreate(orEvent_t* event) noexcept {
  return orEventCreateWithFlags(event, orEventEnableTiming);
}

orError_t orEventCreateWithFlags(orEvent_t* event,
                                 unsigned int flags) noexcept {
  return guarded([&] {
    if (!event) return refuseNull("orEventCreateWithFlags");
    if (flags > orEventEnableTiming) {
      return fail(orErrorInvalidValue, "The flags of an event are ", flags,
                  "; they must be one of orEventFlags.");
    }
    *event = machine().createEvent(flags & orEventEnableTiming);
    return orSuccess;
  });
}

orError_t orEventDestroy(orEvent_t event) noexcept {
  return guarded([&] { return machine().destroy(event); });
}

// [plain.events.record] A later recording has a time of its own, so an earlier one that still waits changes nothing.
orError_t orEventRecord(orEvent_t event, orStream_t stream) noexcept {
  return guarded([&] {
    int there = 0, here = 0;
    orError_t error = machine().with(event, [&](Event& found) {
      here = found.device;
      return orSuccess;
    });
    if (!error) error = orStreamGetDevice(stream, &there);
    if (error) return error;
    if (here >= 0 && here != there) {
      return fail(orErrorInvalidValue, "An event of openreg:", here,
                  " cannot be recorded in a stream of openreg:", there, ".");
    }
    auto time = std::make_shared<Event::Time>();
    uint64_t number = 0;
    error = machine().enqueue(
        stream, [time] { *time = std::chrono::steady_clock::now(); }, &number);
    if (error) return error;
    return machine().with(event, [&](Event& found) {
      found.device = there;
      found.recorded = number;
      found.time = std::move(time);
      return orSuccess;
    });
  });
}

// [plain.events.wait] An event that was never recorded is ready, because command 0 always has run.
orError_t orEventQuery(orEvent_t event) noexcept {
  return guarded([&] {
    return machine().with(event, [](Event& found) {
      return machine().hasRun(found.recorded) ? orSuccess : orErrorNotReady;
    });
  });
}

orError_t orEventSynchronize(orEvent_t event) noexcept {
  return guarded([&] {
    uint64_t recorded = 0;
    const orError_t error = machine().with(event, [&](Event& found) {
      recorded = found.recorded;
      return orSuccess;
    });
    return error ? error : machine().wait(recorded);
  });
}

// [plain.events.time] Both events must have been recorded with timing.
orError_t orEventElapsedTime(float* ms, orEvent_t start,
                             orEvent_t end) noexcept {
  return guarded([&] {
    Event first, last;
    for (auto [event, into] : {std::pair(start, &first), {end, &last}}) {
      const orError_t error = machine().with(event, [&](Event& found) {
        *into = found;
        return orSuccess;
      });
      if (error) return error;
    }
    if (!ms) return refuseNull("orEventElapsedTime");
    if (!first.is_timed || !last.is_timed || !first.recorded ||
        !last.recorded) {
      return fail(orErrorInvalidValue,
                  "The time between two events needs both created with "
                  "timing, and recorded.");
    }
    if (first.device != last.device) {
      return fail(orErrorInvalidValue,
                  "The events were recorded on openreg:", first.device,
                  " and openreg:", last.device,
                  "; there is a time only between two events of one device.");
    }
    const orError_t pending = orEventQuery(end);
    if (pending) return pending;
    *ms = std::chrono::duration<float, std::milli>(*last.time - *first.time)
              .count();
    return orSuccess;
  });
}

// [-]
