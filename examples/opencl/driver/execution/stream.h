// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/examples/opencl/driver/core/owned.h"

#include <functional>
#include <mutex>

namespace openreg::hardware {

struct Device;

// [opencl.stream] A stream is an in-order command queue and the event of its last command.
struct Stream {
  std::mutex mutex;
  /// Null once the stream is destroyed; its place may be another's by then.
  orStream_t handle = nullptr;
  Device* device = nullptr;
  int priority = 0;
  QueueRef queue;
  /// Because a queue keeps order, all work is done when this is.
  EventRef last;
  /// A command that is followed by at most 2 * kHalfOfBound others.
  EventRef milestone;
  uint64_t commands = 0;
};

// [opencl.stream.event] An event is a marker in a queue, which the device completes.
struct Event {
  std::mutex mutex;
  orEvent_t handle = nullptr;
  bool timed = false;
  /// Of the latest recording.
  Device* device = nullptr;
  EventRef latest;
};

// [opencl.stream.find] A stream cannot be destroyed while its lock is held.
struct LockedStream {
  Stream* stream = nullptr;
  std::unique_lock<std::mutex> lock;

  explicit operator bool() const { return stream; }
  Stream* operator->() const { return stream; }
};

/// The stream of `handle`; null means the default stream of the current device.
/// Empty, with the last error set, if there is no such stream.
LockedStream findStream(orStream_t handle);

// [opencl.stream.submit] Every command goes through one function, which keeps its event and bounds the queue.
/// An OpenCL call that enqueues one command and returns its event.
using Enqueue = std::function<cl_int(cl_command_queue queue, cl_event* event)>;

/// Enqueues a command, unless the device has stopped. `call` names what
/// `enqueue` calls. `command` becomes the command's event, unless null.
orError_t submit(orStream_t handle, const char* call, const Enqueue& enqueue,
                 EventRef* command = nullptr);
/// The same for a stream that is locked; it is unlocked afterwards.
orError_t submit(LockedStream stream, const char* call, const Enqueue& enqueue,
                 EventRef* command = nullptr);

/// Waits until `event`, a command of `device`, is complete. A command that
/// failed stops the device.
orError_t waitFor(Device& device, const EventRef& event);

/// Whether `event` is complete. Null stands for an event without a command.
bool isComplete(const EventRef& event);

// [-]
}  // namespace openreg::hardware
