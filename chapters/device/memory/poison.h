// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/device/memory/bins.h"
#include "torch_openreg/chapters/device/streams/stream.h"

namespace openreg {

// [device.poison] A debug mode in which reading freed memory gives NaN, -1 or the maximum.
/// Whether OPENREG_POISON is 1; read once.
/// @throws c10::ValueError if it is neither 0 nor 1.
bool poisonsFreedMemory();

/// Sets every byte of a block that is being freed to 0xFF, in the order of its
/// stream.
void poison(const Block* block);

// [-]
}  // namespace openreg
