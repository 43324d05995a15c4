// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/tests/openreg/printed.h"

#include <gtest/gtest.h>

/// Device memory for a test, which fails if there is none.
inline void* allocate(size_t bytes) {
  void* pointer = nullptr;
  EXPECT_EQ(orMalloc(&pointer, bytes), orSuccess) << orGetErrorDetail();
  return pointer;
}
