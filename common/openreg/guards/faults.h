// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/memory/pages.h"

#include <optional>
#include <vector>

namespace openreg::hardware {

// [common.guards.faults] A fault is noted and its page opened, so that the command runs to its end on all of its threads.
/// The first fault of a command, and the pages that were opened because of it
/// and of later ones.
struct PageFault {
  uintptr_t address;
  /// Unknown on processors other than x86-64, where it counts as a write.
  bool is_write;
  std::vector<Range> opened;
};

/// Faults at these addresses are noted from now on, if a command is watched.
void watchFaults(Range addresses);
/// A command begins on the calling thread. Its faults are those of this thread,
/// and of the threads that this one has started.
void beginCommand();
/// It has ended, on all of its threads.
std::optional<PageFault> endCommand();

// [-]
}  // namespace openreg::hardware
