// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/core/machine.h"

namespace openreg::hardware {

// [common.claim] A block is freed in two phases: it is claimed, then all work ends, and then its memory is given back.
/// Claims the block of `owner` that begins at `begin`, and waits for all work,
/// which may use it. Of several threads that free one block, one gets true. If
/// waiting throws, the block is in use again.
template <class Owner>
bool claimAndDrain(Owner& owner, uintptr_t begin) {
  if (!owner.claim(begin)) return false;
  try {
    synchronizeAll();
  } catch (...) {
    owner.unclaim(begin);
    throw;
  }
  return true;
}

// [-]
}  // namespace openreg::hardware
