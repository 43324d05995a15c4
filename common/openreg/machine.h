// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "device.h"

namespace openreg::hardware {

// [common.machine.event] What an event handle stands for.
struct Event {
  std::mutex mutex;
  bool timed = false;
  std::shared_ptr<Recording> latest;
};

// [common.machine] All devices, their memory, and the tables of handles.
struct Machine {
  Machine();

  Memory memory;
  std::vector<std::unique_ptr<Device>> devices;
  Handles<Stream, orStream_t> streams;
  Handles<Event, orEvent_t> events;
};

/// Starts the machine when it is first called; it is never destroyed, because
/// its threads outlive every destructor.
Machine& machine();

/// The device that is current on the calling thread, as a number and as such.
int& currentIndex();
Device& current();

/// Whether there is a device `index`; if not, the failure is remembered.
orError_t checkDevice(int index);
/// Whether `pointer` is the beginning of a block of device memory, and what is
/// known of it; if not, the failure is remembered.
orError_t checkBlock(const void* pointer, orPointerAttributes* where);

/// The stream behind `handle`, null meaning the current device's default
/// stream; or null, and the failure is remembered.
Stream* findStream(orStream_t handle);
Event* findEvent(orEvent_t handle);

// [common.machine.enqueue] A command goes into a queue, unless the device has failed.
/// Enqueues a command that `fill` completes, and waits for it if the schedule
/// says so.
/// @returns the device's sticky error; nothing is enqueued then.
template <class Fill>
orError_t enqueue(Stream& stream, Fill fill) {
  if (orError_t error = stream.device().health()) return error;
  const uint64_t number = stream.push(std::move(fill));
  // A thread of the device would wait for itself.
  if (Device::isOwnThread()) return orSuccess;
  if (config().blocking) {
    stream.device().drain(stream);
    return stream.device().health();
  }
  // A host that runs ahead without end would fill its memory with commands. The
  // device's counter is far away, so it is looked at now and then.
  constexpr uint64_t kMostPending = 4096;
  if (number % 256 == 0 && number > stream.completed() + kMostPending) {
    stream.device().drain(stream, number - kMostPending);
  }
  return orSuccess;
}

/// Enqueues a kernel, which fails for the reason `fault` if that is not null.
orError_t submit(orStream_t handle, const orKernel* kernel, const char* name,
                 void* arguments, const char* fault);

/// Lets held work go on a little where a program looks without waiting.
void progress();

// [-]
}  // namespace openreg::hardware
