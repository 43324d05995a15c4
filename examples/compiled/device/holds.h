// SPDX-License-Identifier: BSD-3-Clause
// Only for code that runs on the device.
#pragma once

#include "arguments.h"

// [compiled.kernels.assert] Only the first failure is kept; what comes after it usually follows from it.
/// Whether `condition` holds; if not, the record says so.
static inline int holds(int condition, struct AssertionRecord* record,
                        int assertion, int64_t first, int64_t second) {
  int32_t nothing = kNothingFailed;
  if (condition) return 1;
  if (__atomic_compare_exchange_n(&record->state, &nothing, kBeingWritten, 0,
                                  __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    record->assertion = assertion;
    record->values[0] = first;
    record->values[1] = second;
    __atomic_store_n(&record->state, kWritten, __ATOMIC_RELEASE);
  }
  return 0;
}

// [-]
