// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace openreg::hardware {

// [common.copy-engines] One core cannot use the whole bandwidth of the memory, so threads share a large copy.
/// Copies `size` bytes, which may overlap, on the calling thread and, if they
/// are many, on helper threads. Returns when all are copied. Under every
/// schedule the result is that of std::memmove.
void copyBytes(void* to, const void* from, size_t size);

// [-]
}  // namespace openreg::hardware
