// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/guards/layout.h"

#include <unistd.h>

namespace openreg::hardware {

// [common.guards.layout.pages] Any type can be stored at a multiple of 16, and between 0 and 15 bytes of padding follow a block.
BlockLayout layoutOfBlocks(bool guarded) {
  if (!guarded) return {};
  return {alignof(std::max_align_t), pageSize(), pageSize()};
}

uintptr_t pageSize() {
  static const uintptr_t page = sysconf(_SC_PAGESIZE);
  return page;
}

Range pagesOf(Range bytes) {
  const uintptr_t within = pageSize() - 1;
  return {bytes.begin & ~within, (bytes.end + within) & ~within};
}

// [-]
}  // namespace openreg::hardware
