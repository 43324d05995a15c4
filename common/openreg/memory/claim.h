// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/core/machine.h"

namespace openreg::hardware {

// [common.claim] A block is freed in two phases: it is claimed, then all work ends, and then its memory is given back.
/// Claims the block that begins at `pointer`, which `origin` returned, and
/// waits for all work, which may use it. Of several threads that free one
/// block, one succeeds. A block that is not claimed stays in use.
/// @returns orErrorInvalidValue if no block in use begins there,
/// and what `checkMayWait` returns for the calling function.
inline orError_t claimAndDrain(BlockTable& blocks, const void* pointer,
                               const char* origin,
                               const char* function = __builtin_FUNCTION()) {
  if (orError_t error = checkMayWait(function)) return error;
  const auto begin = reinterpret_cast<uintptr_t>(pointer);
  if (!blocks.claim(begin)) return refuseBlock(pointer, origin);
  try {
    synchronizeAll();
    return orSuccess;
  } catch (...) {
    blocks.unclaim(begin);
    throw;
  }
}

// [-]
}  // namespace openreg::hardware
