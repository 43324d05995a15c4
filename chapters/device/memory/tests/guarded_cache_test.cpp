// SPDX-License-Identifier: BSD-3-Clause
// The cache over guarded memory. Each claim has a process of its own, because
// the setting is read once.
#include "torch_openreg/chapters/device/memory/allocator.h"
#include "torch_openreg/chapters/device/memory/cache.h"
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_graphs.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace {

using openreg::Block;
using openreg::Cache;

c10::Stream aStream() {
  static const c10::Stream stream = openreg::poolStream(0, 0);
  return stream;
}

template <class Claim>
[[noreturn]] void guarded(Claim claim) {
  setenv("OPENREG_SANITIZE", "memory", 1);
  setenv("OPENREG_DEVICE_MEMORY", "64M", 1);
  claim();
  std::exit(testing::Test::HasFailure());
}

class GuardedCacheDeathTest : public testing::Test {
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

#define EXPECT_GUARDED(...) \
  EXPECT_EXIT(guarded(__VA_ARGS__), testing::ExitedWithCode(0), "")

TEST_F(GuardedCacheDeathTest, gives_back_what_is_freed_and_no_block_twice) {
  EXPECT_GUARDED([] {
    Cache cache;
    Block* block = cache.allocate(1000, aStream());
    const std::byte* data = block->data;
    cache.free(block);
    EXPECT_NE(cache.allocate(1000, aStream())->data, data);
    cache.empty();
    EXPECT_EQ(cache.stats().segment[0].current, 1);
  });
}

TEST_F(GuardedCacheDeathTest, empties_the_cache_of_each_device) {
  EXPECT_GUARDED([] {
    c10::DeviceAllocator& allocator = openreg::allocator();
    const auto before = allocator.getMemoryInfo(1);
    {
      const openreg::DeviceScope scope(1);
      const c10::DataPtr block = allocator.allocate(1000);
      openreg::launch(openreg::currentNativeStream(1), "sleeps", [] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      });
    }
    EXPECT_LT(allocator.getMemoryInfo(1), before);
    allocator.emptyCache();
    EXPECT_EQ(allocator.getMemoryInfo(1), before);
  });
}

TEST_F(GuardedCacheDeathTest, keeps_the_memory_of_a_pool_until_its_release) {
  EXPECT_GUARDED([] {
    Cache cache;
    const Cache::PoolId pool{0, 7};
    cache.beginPool(pool, [](c10::Stream) { return true; });
    cache.free(cache.allocate(1000, aStream()));
    cache.endPool(pool);
    cache.empty();
    EXPECT_EQ(cache.stats().segment[0].current, 1);
    cache.releasePool(pool, {});
    cache.empty();
    EXPECT_EQ(cache.stats().segment[0].current, 0);
  });
}

TEST_F(GuardedCacheDeathTest, asks_a_full_device_again_for_what_is_needed) {
  EXPECT_GUARDED([] {
    Cache cache;
    size_t free, total;
    openreg::check(orMemGetInfo(&free, &total));
    cache.free(cache.allocate(total / 5 * 4, aStream()));
    cache.free(cache.allocate(total / 5 * 4, aStream()));
    EXPECT_THROW(cache.allocate(total + 1, aStream()), c10::OutOfMemoryError);
  });
}

TEST_F(GuardedCacheDeathTest, frees_a_block_of_a_captured_stream_later) {
  EXPECT_GUARDED([] {
    Cache cache;
    Block* block = cache.allocate(1000, aStream());
    const orStream_t handle = openreg::nativeStream(aStream());
    openreg::check(orStreamBeginCapture(handle, orStreamCaptureModeGlobal));
    cache.beginPool({0, 7}, [](c10::Stream) { return true; });
    cache.free(block);
    orGraph_t graph = nullptr;
    openreg::check(orStreamEndCapture(handle, &graph));
    EXPECT_EQ(cache.stats().segment[0].current, 1);
    cache.endPool({0, 7});
    cache.empty();
    EXPECT_EQ(cache.stats().segment[0].current, 0);
    openreg::check(orGraphDestroy(graph));
  });
}

}  // namespace
