// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/execution/host_waiters.h"
#include "torch_openreg/common/openreg/errors/refusal.h"
#include "torch_openreg/common/openreg/interface/openreg.h"
#include "torch_openreg/common/openreg/races/clock.h"

#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

namespace openreg::hardware {

class Capture;
class CommandQueue;
class Device;
struct NumberWait;

// [common.event.recording] A recording is one point in a stream.
/// One call of orEventRecord. Recording an event again makes a new recording,
/// and does not disturb those who wait for the old one.
struct Recording {
  Device* device = nullptr;
  std::atomic<bool> completed{false};
  /// Whether a host thread sleeps until it completes.
  std::atomic<bool> host_waits{false};
  std::chrono::steady_clock::time_point time;
  std::mutex mutex;
  std::list<CommandQueue*> parked;
  /// That of its stream, from when it completes.
  PendingRefusal refusal;
  /// What its device had failed with by then, for the streams of others.
  PendingRefusal failure;
  /// The capture that it is a part of, and the nodes that it stands for; or
  /// null. Such a recording never completes.
  std::shared_ptr<Capture> capture;
  std::vector<size_t> after;
  /// What comes before it, while races are wanted.
  Clock clock;

  /// Marks the recording as complete, and wakes whatever waits for it.
  void complete();
  /// Whether it is complete, and has nothing to tell a stream that waits for
  /// it.
  bool isSettled() const {
    return completed && !refusal.get() && !failure.get();
  }
  /// Parks `queue` until the recording completes; false if it is complete.
  bool park(CommandQueue* queue);
  /// Blocks a host thread until the recording completes, or until its callback
  /// ends the wait; returns whether it is complete.
  bool synchronize();
};

// [common.event] An event refers to its latest recording.
struct Event {
  std::mutex mutex;
  /// Null if the event is destroyed. The lock guards all members.
  orEvent_t handle = nullptr;
  bool timed = false;
  std::shared_ptr<Recording> latest;
};

// [-]
}  // namespace openreg::hardware
