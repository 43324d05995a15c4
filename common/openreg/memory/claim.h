// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/core/machine.h"

namespace openreg::hardware {

// [common.claim] A block is freed in two phases: it is claimed, then all work ends, and then its memory is given back.
/// Claims the block that begins at `pointer`, which `origin` returned, and
/// waits for all work, which may use it. Of several threads that free one
/// block, one succeeds. A block that is not claimed stays in use.
/// @throws orErrorInvalidValue if no block in use begins there,
/// and what `checkMayWait` throws for `function`.
inline void claimAndDrain(BlockTable& blocks, const void* pointer,
                          const char* origin, const char* function) {
  checkMayWait(function);
  const auto begin = reinterpret_cast<uintptr_t>(pointer);
  if (!blocks.claim(begin)) throw refuseBlock(pointer, origin);
  try {
    synchronizeAll();
  } catch (...) {
    blocks.unclaim(begin);
    throw;
  }
}

// [-]
}  // namespace openreg::hardware
