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

  bool is_timed = false;
  /// Of the first recording; -1 before.
  int device = -1;
  /// The command that recorded it last; 0 if none has.
  uint64_t recorded = 0;
  /// Written by that command.
  std::shared_ptr<Time> time;
};

/// Started by the first call that needs it, and never ended. Its functions
/// throw the orError_t that the interface returns.
class Machine {
 public:
  /// Two, so that the tests of copies between devices have something to do.
  static constexpr int kDevices = 2;
  static constexpr size_t kMemory = size_t{4} << 30;

  Machine();

  // [plain.machine.commands] A command is known by its number, and waiting for it means waiting for all before it.
  /// @returns the number of the command.
  uint64_t enqueue(orStream_t stream, std::function<void()> command);
  void wait(uint64_t number);
  /// Waits for all commands of all streams.
  void waitForAll();
  bool hasRun(uint64_t number);

  // [plain.machine.handles] Handles are numbers that are never used twice, so an old one is refused.
  static orStream_t defaultStream(int device) {
    return reinterpret_cast<orStream_t>(uintptr_t(device + 1));
  }
  orStream_t add(Stream stream);
  orEvent_t add(Event event);
  Stream get(orStream_t handle);
  Event get(orEvent_t handle);
  void set(orEvent_t handle, Event event);
  void destroy(orStream_t handle);
  void destroy(orEvent_t handle);

  // [plain.machine.memory] Each device has a range of plain memory, which the host can read and write.
  std::array<Region, kDevices> memory;
  Region pinned;

  // [plain.machine.state] One lock protects everything but the memory, which has its own.
 private:
  Stream& find(orStream_t handle);
  Event& find(orEvent_t handle);
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
/// The device that is current on the calling thread.
int& current();

// [plain.machine.checks] A check throws the code that the function of the interface returns.
/// Refuses a process that was forked after the start.
void enter();
/// Refuses the device's own thread, which cannot wait for itself.
void checkMayWait();
void checkDevice(int index);
void checkFlags(unsigned int flags, unsigned int most);
/// Where `function` writes its answer.
template <class T>
T& answer(T* pointer, const char* function) {
  if (!pointer) throw refuseNull(function);
  return *pointer;
}

// [plain.machine.border] Within the driver an error is thrown; at the border it becomes a code.
/// What `caught` returns for a function that needs the machine.
template <class Body>
orError_t guarded(Body body) noexcept {
  return caught([&] {
    enter();
    body();
  });
}

// [-]
}  // namespace openreg::hardware
