// SPDX-License-Identifier: BSD-3-Clause
#pragma once

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

/// How the lock is released and taken. `release` returns null if the calling
/// thread does not hold it, else what `take` needs.
struct Gil {
  void* (*release)();          ///< never waits
  void (*take)(void* thread);  ///< waits for the lock
};

/// Set once, by the bindings: the backend itself is not linked to Python.
void setGil(Gil gil);

// [-]
}  // namespace openreg
