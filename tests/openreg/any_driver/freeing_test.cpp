// SPDX-License-Identifier: BSD-3-Clause
// What happens when threads free one block at the same time.
#include "torch_openreg/tests/openreg/streams.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace {

// How many of four threads succeed with `free`, while the device is busy.
int successes(const std::function<orError_t()>& free) {
  enqueue(nullptr, [] { usleep(5000); });
  std::atomic<int> count{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const orError_t error = free();
      count += error == orSuccess;
      EXPECT_TRUE(error == orSuccess || error == orErrorInvalidValue);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return count;
}

TEST(Freeing, one_of_the_threads_that_free_a_block_succeeds) {
  for (int round = 0; round < 20; ++round) {
    void *device, *pinned;
    ASSERT_EQ(orMalloc(&device, 4096), orSuccess);
    ASSERT_EQ(orMallocHost(&pinned, 4096), orSuccess);
    EXPECT_EQ(successes([&] { return orFree(device); }), 1);
    EXPECT_EQ(successes([&] { return orFreeHost(pinned); }), 1);
  }
}

}  // namespace
