// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace openreg {

// [common.background] Signals are for the program's threads: Python looks for them on its own.
/// Runs `body()` on a detached thread that takes no signals.
/// @throws std::system_error if the system refuses the thread.
template <class Body>
void runInBackground(Body body) {
  struct Mask {
    sigset_t before;
    ~Mask() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  } mask;
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &mask.before);
  std::thread(std::move(body)).detach();
}

// [-]
}  // namespace openreg
