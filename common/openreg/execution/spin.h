// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>

namespace openreg::hardware {

// [common.spin] Waking a thread costs more than most kernels, so a thread spins for 50 us before it sleeps.
/// Calls `found()` until it is true or 50 us are over; whether it was.
template <class Found>
bool spin(Found found) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::microseconds(50);
  do {
    for (int look = 0; look < 8; ++look) {
      if (found()) return true;
        // Leaves the core to a hyper-thread that may share it.
#if defined(__x86_64__)
      for (int rest = 0; rest < 8; ++rest) __builtin_ia32_pause();
#endif
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

// [-]
}  // namespace openreg::hardware
