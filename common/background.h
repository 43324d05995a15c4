// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg_graphs.h"

#include <csignal>
#include <thread>
#include <utility>

namespace openreg {

// [common.background] Signals and captures belong to the program's threads: Python looks for signals on its own.
/// Runs `body()` on a detached thread that takes no signals but its own faults,
/// and whose waits invalidate no capture.
/// @throws std::system_error if the system refuses the thread.
template <class Body>
void runInBackground(Body body) {
  struct Mask {
    sigset_t before;
    ~Mask() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  } mask;
  sigset_t all;
  sigfillset(&all);
  // A thread that faults while it blocks the signal ends the process unheard.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &mask.before);
  std::thread([body = std::move(body)]() mutable {
    auto mode = orStreamCaptureModeRelaxed;
    orThreadExchangeStreamCaptureMode(&mode);
    body();
  }).detach();
}

// [-]
}  // namespace openreg
