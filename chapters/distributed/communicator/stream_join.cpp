// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/communicator/stream_join.h"

#include "torch_openreg/common/check.h"

namespace openreg {

// [distributed.join.streams] A stream is always in order with itself.
StreamJoin::~StreamJoin() {
  if (event_) static_cast<void>(orEventDestroy(event_));
}

void StreamJoin::operator()(orStream_t before, orStream_t after) {
  if (before == after) return;
  if (!event_) check(orEventCreateWithFlags(&event_, orEventDisableTiming));
  check(orEventRecord(event_, before));
  check(orStreamWaitEvent(after, event_, 0));
}

// [-]
}  // namespace openreg
