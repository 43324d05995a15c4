// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/memory/region.h"

#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace openreg::hardware {

// [plain.machine] One thread runs the commands of all streams, in the order in which they were enqueued.
/// A stream therefore needs no queue of its own, only the number of its last
/// command, and a stream that waits for an event has nothing to do: the event
/// was recorded by an earlier command.
struct Stream {
  int device = 0;
  uint64_t last = 0;
};

struct Event {
  using Time = std::chrono::steady_clock::time_point;

  /// Of the first recording; -1 before.
  int device = -1;
  bool is_timed = false;
  /// The command that recorded it last; 0 if none has.
  uint64_t recorded = 0;
  /// Written by that command.
  std::shared_ptr<Time> time;
};

/// Started by the first call that needs it, and never ended.
class Machine {
 public:
  /// Two, so that the tests of copies between devices have something to do.
  static constexpr int kDevices = 2;
  static constexpr size_t kMemory = size_t{4} << 30;

  Machine();

  // [plain.machine.commands] A handle is looked up and its command enqueued under one lock, so no other thread destroys it in between.
  /// Enqueues `command`; `number` becomes the command's, unless it is null.
  orError_t enqueue(orStream_t stream, std::function<void()> command,
                    uint64_t* number = nullptr);
  /// Waits until command `number` and all before it have run.
  orError_t wait(uint64_t number);
  /// The number of the command that was enqueued last.
  uint64_t submitted();
  /// Calls `use(state)` under the lock, or refuses the handle.
  orError_t with(orStream_t handle,
                 const std::function<orError_t(Stream&)>& use);
  orError_t with(orEvent_t handle, const std::function<orError_t(Event&)>& use);
  /// Only within `with`.
  bool hasRun(uint64_t number) const { return number <= completed_; }

  // [plain.machine.handles] Handles are numbers that are never used twice, so an old one is refused.
  static orStream_t defaultStream(int device) {
    return reinterpret_cast<orStream_t>(uintptr_t(device + 1));
  }
  orStream_t createStream();
  orError_t destroy(orStream_t handle);
  orEvent_t createEvent(bool is_timed);
  orError_t destroy(orEvent_t handle);

  // [plain.machine.memory] Each device has a range of plain memory, which the host can read and write.
  std::array<Region, kDevices> memory;
  Region pinned;

  // [plain.machine.state] One lock protects everything but the memory, which has its own.
 private:
  void run();

  std::mutex mutex_;
  std::condition_variable work_, done_;
  std::deque<std::function<void()>> commands_;
  uint64_t submitted_ = 0, completed_ = 0;
  uintptr_t last_handle_ = uintptr_t{1} << 32;
  std::map<orStream_t, Stream> streams_;
  std::map<orEvent_t, Event> events_;
};

// [plain.machine.enter] Each call begins by asking for the machine, which starts with the first of them.
Machine& machine();
bool isStarted();
/// orErrorForked in a process that was forked after the start.
orError_t enter();
/// orErrorNotPermitted on the device's own thread, which cannot wait for
/// itself.
orError_t checkMayWait();
orError_t checkDevice(int index);
/// The number of the device that is current on the calling thread.
int& current();

/// Runs the body of a function of the interface, out of which no exception may
/// come.
template <class Body>
orError_t guarded(Body body) noexcept {
  try {
    if (const orError_t error = enter()) return error;
    return body();
  } catch (...) {
    return failWithException();
  }
}

// [-]
}  // namespace openreg::hardware
