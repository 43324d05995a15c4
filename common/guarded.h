// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"

namespace openreg {

// [common.guarded] A debug mode in which each tensor has a block of the driver's, so that the driver sees each touch outside of it.
/// Whether the driver guards its memory (OPENREG_SANITIZE=memory). Asked once;
/// no for a driver that cannot.
bool memoryIsGuarded();

/// Gives a block back to the driver, in the order of `stream`. Not to be called
/// with a lock that a kernel may need.
void giveBackGuarded(void* block, orStream_t stream);

// [-]
}  // namespace openreg
