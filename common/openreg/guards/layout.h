// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/memory/region.h"

#include <cstddef>
#include <cstdint>

namespace openreg::hardware {

// [common.guards.layout] A guarded block ends where its last page ends, so that most writes past it fault at once.
/// How blocks lie in the memory of a device.
BlockLayout layoutOfBlocks(bool guarded);

/// The bytes [begin, end).
struct Range {
  uintptr_t begin = 0, end = 0;

  size_t size() const { return end - begin; }
  bool contains(uintptr_t address) const { return address - begin < size(); }
};

uintptr_t pageSize();
/// The pages on which the bytes are.
Range pagesOf(Range bytes);

// [-]
}  // namespace openreg::hardware
