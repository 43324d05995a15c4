// SPDX-License-Identifier: BSD-3-Clause
// What a driver promises that tells freed memory from the host's.
#include "torch_openreg/tests/openreg/refused.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <unistd.h>

#include <atomic>
#include <thread>

namespace {

TEST_F(Refused, freed_memory) {
  expectAll(orErrorInvalidValue,
            {CALL(orMemcpy(freed, host, 1, orMemcpyHostToDevice)),
             CALL(orMemcpy(freed, host, 1, orMemcpyHostToHost)),
             CALL(orMemcpy(host, freed, 1, orMemcpyHostToHost)),
             CALL(orMemset(freed, 0, 1))});
}

TEST_F(Refused, memory_that_is_being_freed) {
  std::atomic<bool> go{false};
  enqueue(nullptr, until(go));
  std::thread freeing([&] { EXPECT_EQ(orFree(block), orSuccess); });
  orPointerAttributes at{};
  at.type = orMemoryTypeDevice;
  for (int i = 0; i < 50000 && at.type != orMemoryTypeUnmanaged; ++i) {
    usleep(100);
    EXPECT_EQ(orPointerGetAttributes(&at, block), orSuccess);
  }
  EXPECT_EQ(at.type, orMemoryTypeUnmanaged);
  if (at.type == orMemoryTypeUnmanaged) {
    EXPECT_EQ(orMemsetAsync(block, 0, 1, nullptr), orErrorInvalidValue);
    EXPECT_EQ(orFree(block), orErrorInvalidValue);
  }
  go = true;
  freeing.join();
  block = nullptr;
}

}  // namespace
