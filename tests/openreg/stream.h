// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "common/openreg/openreg.h"

/// A stream of the current device that is destroyed with its scope.
struct Stream {
  explicit Stream(int priority = 0) {
    orStreamCreateWithPriority(&handle, 0, priority);
  }
  ~Stream() { orStreamDestroy(handle); }
  orStream_t handle = nullptr;
};
