// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"

#include <cstddef>

namespace openreg {

// [common.guarded] A debug mode in which each tensor has a block of the driver's, so that the driver sees each touch outside of it.
/// Whether the driver guards its memory (OPENREG_SANITIZE=memory). Asked once;
/// no for a driver that cannot.
bool memoryIsGuarded();

/// Gives a block back to the driver, in the order of `stream`. Not to be called
/// with a lock that a kernel may need.
void giveBackGuarded(void* block, orStream_t stream);

// [common.guarded.settled] The driver also finds races; what an allocator learns is about its blocks, and puts nothing else in order.
/// These bytes are handed out after what is enqueued on `stream` now.
void announceSettled(const void* data, size_t bytes, orStream_t stream);

/// While it lives, what this thread asks of events and streams is not counted.
struct AsksForItself {
  AsksForItself();
  ~AsksForItself();
};

// [-]
}  // namespace openreg
