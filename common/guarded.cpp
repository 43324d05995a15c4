// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/guarded.h"
#include "torch_openreg/common/accesses.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/common/waiting.h"

namespace openreg {

// [common.guarded.ask] A driver that has no guards refuses the question, which is an answer.
bool memoryIsGuarded() {
  static const bool is_guarded = [] {
    int answer = 0;
    return orMemoryIsGuarded(&answer) == orSuccess && answer != 0;
  }();
  return is_guarded;
}

// [common.guarded.give-back] A stream that is gone gives no order, so the block is freed as any other.
void giveBackGuarded(void* block, orStream_t stream) {
  if (orRetireBlock(block, stream) == orSuccess) return;
  WithoutGil others_run;
  orFree(block);
}

// [common.guarded.say] A driver that finds no races refuses, which does no harm.
void announceSettled(const void* data, size_t bytes, orStream_t stream) {
  if (accessesAreWanted()) orAnnounceSettled(data, bytes, stream);
}

AsksForItself::AsksForItself() { orWatchOnly(1); }

AsksForItself::~AsksForItself() { orWatchOnly(0); }

// [-]
}  // namespace openreg
