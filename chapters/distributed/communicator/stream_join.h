// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"

namespace openreg {

// [distributed.join] One event is enough, because a later recording does not disturb an earlier wait.
/// Makes streams wait for each other. One thread at a time may use it.
class StreamJoin {
 public:
  StreamJoin() = default;
  ~StreamJoin();
  StreamJoin(const StreamJoin&) = delete;
  StreamJoin& operator=(const StreamJoin&) = delete;

  /// The later work of `after` waits for the earlier work of `before`.
  void operator()(orStream_t before, orStream_t after);

 private:
  orEvent_t event_ = nullptr;
};

// [-]
}  // namespace openreg
