// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "chapters/device/memory/bins.h"
#include "chapters/device/streams/stream.h"

namespace openreg {

// [device.poison] A debug mode: whoever reads freed memory reads NaN, -1 or the maximum.
/// Whether OPENREG_POISON is 1; read once.
/// @throws c10::ValueError if it is neither 0 nor 1.
bool poisonsFreedMemory();

/// Overwrites the block, which is being freed, in the order of its stream.
/// Every byte becomes 0xFF.
void poison(const Block* block);

// [-]
}  // namespace openreg
