// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"

#include <c10/util/FunctionRef.h>

#include <chrono>

namespace openreg {

// [common.waiting] A thread that waits for the device does not hold Python's lock meanwhile.
/// While it lives, the calling thread does not hold Python's global interpreter
/// lock (GIL). If the thread held the lock before, the destructor takes it
/// again; if not, or without Python, nothing happens. For deleters and
/// everything else that may run with the lock or without it. The calling thread
/// must not hold a mutex that a thread with the lock may be waiting for.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  void* const thread_;
};

// [common.waiting.interruptible] A long wait of the user's ends at Ctrl-C, and leaves the work enqueued.
/// Calls `wait`, one of the driver's functions that synchronize, without the
/// GIL and until it is done. Every tenth of a second, Python's main thread runs
/// the handlers of signals that came meanwhile. With a driver that does not
/// call back, they run afterwards.
/// @returns what `wait` did.
/// @throws what a handler raised, such as KeyboardInterrupt.
orError_t waitInterruptibly(c10::function_ref<orError_t()> wait);

/// The same for what the driver cannot wait for: asks `is_done`, with pauses
/// that grow from 20 µs to `longest`, until it returns true.
/// @throws what it threw, or what a handler raised.
void pollInterruptibly(c10::function_ref<bool()> is_done,
                       std::chrono::microseconds longest);

// [common.waiting.untold] What waits without the user's knowledge must not take an error that is meant for the user.
/// The driver reports a kernel's refusal once. While this lives, it does not
/// report it to this thread, so it is left for a wait of the program's.
struct LeavesRefusals {
  LeavesRefusals();
  ~LeavesRefusals();
};

// [common.waiting.gil] What there is to know about Python.
/// How the lock is released and taken. `release` returns null if the calling
/// thread does not hold it, else what `take` needs.
struct Gil {
  void* (*release)();          ///< never waits
  void (*take)(void* thread);  ///< waits for the lock
  /// Called without the lock; throws what a handler of a signal raised.
  void (*run_signal_handlers)();
};

/// Set once, by the bindings: the backend itself is not linked to Python.
void setGil(Gil gil);

// [-]
}  // namespace openreg
