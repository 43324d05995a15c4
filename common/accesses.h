// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg_tools.h"

namespace openreg {

// [common.accesses.wanted] Nearly always nobody wants to know what a kernel touches, so asking costs as little as possible.
/// Whether anybody wants to know; a load and a branch. With a driver that does
/// not: never.
inline bool accessesAreWanted() {
  static const int* const flag = [] {
    static const int never = 0;
    const int* found = nullptr;
    return orAccessFlag(&found) || !found ? &never : found;
  }();
  return __atomic_load_n(flag, __ATOMIC_RELAXED);
}

/// Begins a launch: what a launch announced that was not enqueued is taken
/// back.
inline void beginAccesses() {
  if (accessesAreWanted()) orAnnounceAccess(nullptr);
}

// [-]
}  // namespace openreg
