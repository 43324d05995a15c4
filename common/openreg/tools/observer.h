// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg_tools.h"

#include <atomic>
#include <list>
#include <shared_mutex>
#include <string>
#include <vector>

// [common.observer.added] An observer has the number of what began last before it.
struct orObserver {
  orObserve observe;
  void* data;
  /// What began up to this number began before the observer was added.
  uint64_t last_before;
  /// A number, because another observer may get the same address later.
  orObserver_t handle;
};

// [-]
namespace openreg::hardware {

// [common.observer.traced] A command keeps what its later records repeat.
struct Traced {
  /// 0 if no observer sees the command.
  uint64_t correlation = 0;
  orOperation operation = orOperationLaunch;
  int direction = -1;
  size_t bytes = 0;
  int64_t enqueued = 0;
  /// When the device began it; 0 before.
  int64_t begin = 0;
};

/// What the calling thread's call of the driver is about, without a number.
Traced describeCall();

int64_t steadyNanoseconds();

// [common.observer] Without an observer, a command or a call costs a load and a branch.
inline constinit std::atomic<bool> is_observed{false};

inline bool isObserved() { return is_observed.load(std::memory_order_relaxed); }

/// How many streams' captures need to know what a call is about.
inline constinit std::atomic<int> active_captures{0};

class Observers {
 public:
  orObserver_t add(orObserve observe, void* data);
  bool remove(orObserver_t observer);

  /// The number of what begins now.
  uint64_t nextNumber() { return ++last_; }
  /// Passes on the record of what began with `number`.
  void report(uint64_t number, const orRecord& record);

  // [common.observer.command] The queue reports the three phases of a command, and holds no lock meanwhile.
  /// Numbers a command that the calling thread is about to enqueue.
  Traced enqueue();
  /// Reports it, once it is enqueued.
  void enqueued(const Traced& traced, const char* name, int device,
                orStream_t stream);
  void begin(Traced& traced, const char* name, int device, orStream_t stream);
  void end(const Traced& traced, const char* name, int device,
           orStream_t stream);

 private:
  std::shared_mutex mutex_;
  std::list<orObserver> observers_;
  uintptr_t last_handle_ = 0;
  std::atomic<uint64_t> last_{0};
};

Observers& observers();

// [common.observer.call] A function of the driver reports itself when it returns, and the outermost one counts.
class ObservedCall {
 public:
  ObservedCall(const char* function, orOperation operation, size_t bytes = 0,
               int direction = -1) {
    if (isObserved() || active_captures.load(std::memory_order_relaxed) > 0) {
      open(function, operation, bytes, direction);
    }
  }
  ~ObservedCall() {
    if (number_) close();
  }
  ObservedCall(const ObservedCall&) = delete;
  ObservedCall& operator=(const ObservedCall&) = delete;

  /// What an allocation returned, or what is freed; device -1 is the host.
  void setBlock(const void* pointer, size_t bytes, int device) {
    record_.pointer = pointer;
    record_.bytes = bytes;
    record_.device = device;
  }

 private:
  friend class Observers;
  friend Traced describeCall();
  void open(const char* function, orOperation operation, size_t bytes,
            int direction);
  void close();

  /// 0 if the call is not reported.
  uint64_t number_ = 0;
  orRecord record_;
};

// [common.observer.ranges] Ranges are kept even without an observer, so that pushes and pops always match.
bool popRange();
void pushRange(const char* name);

// [-]
}  // namespace openreg::hardware
