// SPDX-License-Identifier: BSD-3-Clause
// What a driver promises whose devices have memory of their own.
#include "torch_openreg/tests/openreg/allocate.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace {

TEST(OwnMemory, the_host_cannot_follow_a_device_address) {
  auto* value = static_cast<volatile int*>(allocate(sizeof(int)));
  EXPECT_EXIT(*value = 1, testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(std::_Exit(*value), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EQ(orFree(const_cast<int*>(value)), orSuccess);
}

}  // namespace
