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
    checkFlags(flags, 0);
    answer(stream, "orStreamCreate") = machine().add(Stream{current()});
  });
}

orError_t orStreamDestroy(orStream_t stream) noexcept {
  return guarded([&] { machine().destroy(stream); });
}

orError_t orDeviceGetDefaultStream(orStream_t* stream, int device) noexcept {
  return guarded([&] {
    checkDevice(device);
    answer(stream, "orDeviceGetDefaultStream") = Machine::defaultStream(device);
  });
}

// [plain.streams.facts] Asking about a stream is also how its handle is checked.
orError_t orStreamGetPriority(orStream_t stream, int* priority) noexcept {
  return guarded([&] {
    machine().get(stream);
    answer(priority, "orStreamGetPriority") = 0;
  });
}

orError_t orStreamGetDevice(orStream_t stream, int* device) noexcept {
  return guarded([&] {
    answer(device, "orStreamGetDevice") = machine().get(stream).device;
  });
}

// [plain.streams.wait] A stream is idle when its last command has run.
orError_t orStreamQuery(orStream_t stream) noexcept {
  return guarded([&] {
    if (!machine().hasRun(machine().get(stream).last)) throw orErrorNotReady;
  });
}

orError_t orStreamSynchronize(orStream_t stream) noexcept {
  return guarded([&] { machine().wait(machine().get(stream).last); });
}

// [plain.streams.order] A wait for an event is a command that does nothing, because all commands run in one order.
orError_t orStreamWaitEvent(orStream_t stream, orEvent_t event,
                            unsigned int flags) noexcept {
  return guarded([&] {
    checkFlags(flags, 0);
    machine().get(event);
    machine().enqueue(stream, [] {});
  });
}

orError_t orLaunchHostFunc(orStream_t stream, void (*function)(void*),
                           void* data) noexcept {
  return guarded([&] {
    if (!function) throw refuseNull("orLaunchHostFunc");
    machine().enqueue(stream, [=] { function(data); });
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
    checkFlags(flags, orEventEnableTiming);
    Event made;
    made.is_timed = flags == orEventEnableTiming;
    answer(event, "orEventCreate") = machine().add(made);
  });
}

orError_t orEventDestroy(orEvent_t event) noexcept {
  return guarded([&] { machine().destroy(event); });
}

// [plain.events.record] A later recording has a time of its own, so an earlier one that still waits changes nothing.
orError_t orEventRecord(orEvent_t event, orStream_t stream) noexcept {
  return guarded([&] {
    Event recorded = machine().get(event);
    const int there = machine().get(stream).device;
    if (recorded.device >= 0 && recorded.device != there) {
      throw fail(orErrorInvalidValue, "An event of openreg:", recorded.device,
                 " cannot be recorded in a stream of openreg:", there, ".");
    }
    recorded.device = there;
    recorded.time = std::make_shared<Event::Time>();
    recorded.recorded = machine().enqueue(stream, [time = recorded.time] {
      *time = std::chrono::steady_clock::now();
    });
    machine().set(event, std::move(recorded));
  });
}

// [plain.events.wait] An event that was never recorded is ready, because command 0 always has run.
orError_t orEventQuery(orEvent_t event) noexcept {
  return guarded([&] {
    if (!machine().hasRun(machine().get(event).recorded)) throw orErrorNotReady;
  });
}

orError_t orEventSynchronize(orEvent_t event) noexcept {
  return guarded([&] { machine().wait(machine().get(event).recorded); });
}

// [plain.events.time] Both events must have been recorded with timing.
orError_t orEventElapsedTime(float* ms, orEvent_t start,
                             orEvent_t end) noexcept {
  return guarded([&] {
    const Event first = machine().get(start), last = machine().get(end);
    float& between = answer(ms, "orEventElapsedTime");
    if (!first.is_timed || !last.is_timed || !first.recorded ||
        !last.recorded) {
      throw fail(orErrorInvalidValue,
                 "The time between two events needs both created with timing, "
                 "and recorded.");
    }
    if (first.device != last.device) {
      throw refuseTimeBetween(first.device, last.device);
    }
    if (!machine().hasRun(std::max(first.recorded, last.recorded)))
      throw orErrorNotReady;
    between = std::chrono::duration<float, std::milli>(*last.time - *first.time)
                  .count();
  });
}

// [-]
