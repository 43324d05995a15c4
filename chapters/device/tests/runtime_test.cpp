// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/device/allocator.h"
#include "chapters/device/stream.h"
#include "common/openreg/launch.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>

namespace {

using openreg::allocator;
using openreg::kDeviceType;

TEST(Guard, the_device_is_switched_and_switched_back) {
  {
    c10::DeviceGuard guard({kDeviceType, 1});
    EXPECT_EQ(openreg::currentDevice(), 1);
  }
  EXPECT_EQ(openreg::currentDevice(), 0);
}

TEST(Guard, an_index_that_does_not_exist_is_refused_and_changes_nothing) {
  EXPECT_THROW(c10::DeviceGuard({kDeviceType, 9}), c10::IndexError);
  EXPECT_EQ(openreg::currentDevice(), 0);
}

TEST(Guard, minus_one_is_never_echoed_back) {
  EXPECT_EQ(openreg::poolStream(-1, 0).device_index(), 0);
  EXPECT_EQ(openreg::currentStream(-1).device_index(), 0);
}

TEST(Streams, a_stream_guard_switches_device_and_stream) {
  const c10::Stream stream = openreg::poolStream(1, 0);
  {
    c10::StreamGuard guard(stream);
    EXPECT_EQ(openreg::currentDevice(), 1);
    EXPECT_EQ(openreg::currentStream(1), stream);
  }
  EXPECT_EQ(openreg::currentDevice(), 0);
  EXPECT_EQ(openreg::currentStream(1), openreg::defaultStream(1));
}

TEST(Allocator, a_freed_block_is_used_again_by_its_stream) {
  void* first = allocator().allocate(1000).get();
  EXPECT_EQ(allocator().allocate(900).get(), first);
  c10::StreamGuard guard(openreg::poolStream(0, 0));
  EXPECT_NE(allocator().allocate(1000).get(), first);
}

TEST(Allocator,
     a_block_that_another_stream_uses_is_not_used_again_before_it_is_done) {
  const c10::Stream other = openreg::poolStream(0, 0);
  std::atomic<bool> go{false};
  void* first;
  {
    c10::DataPtr data = allocator().allocate(5000);
    first = data.get();
    allocator().recordStream(data, other);
    openreg::launch(openreg::nativeStream(other), "held", [&] {
      while (!go) usleep(10);
    });
  }
  EXPECT_NE(allocator().allocate(5000).get(), first);
  go = true;
  other.synchronize();
  c10::DataPtr second = allocator().allocate(5000),
               third = allocator().allocate(5000);
  EXPECT_TRUE(second.get() == first || third.get() == first);
}

TEST(Allocator, emptying_the_cache_waits_for_kernels_that_free_memory) {
  // The last owner of a block may be a kernel's argument: it is freed on the
  // device's thread, while the host holds the cache open to empty it.
  for (int i = 0; i < 200; ++i) {
    auto data = std::make_shared<c10::DataPtr>(allocator().allocate(1000));
    openreg::launch(nullptr, "owner", [data] {});
    data.reset();
    allocator().emptyCache();
  }
}

TEST(Allocator, a_full_device_is_emptied_and_then_says_what_is_wrong) {
  allocator().emptyCache();
  const auto [free, total] = allocator().getMemoryInfo(0);
  { c10::DataPtr half = allocator().allocate(free / 2); }
  { c10::DataPtr most = allocator().allocate(free / 4 * 3); }
  EXPECT_EQ(allocator().getDeviceStats(0).num_alloc_retries, 1);
  try {
    allocator().allocate(total + 1);
    FAIL() << "nothing was thrown";
  } catch (const c10::OutOfMemoryError& error) {
    EXPECT_NE(
        std::string(error.what()).find("PyTorch holds 0 bytes in tensors."),
        std::string::npos)
        << error.what();
  }
  EXPECT_TRUE(allocator().allocate(1000).get());
}

TEST(Allocator, statistics_count_what_is_held) {
  allocator().emptyCache();
  allocator().resetPeakStats(0);
  EXPECT_EQ(allocator().getDeviceStats(0).allocated_bytes[0].current, 0);
  { c10::DataPtr data = allocator().allocate(1000); }
  const auto stats = allocator().getDeviceStats(0);
  EXPECT_EQ(stats.allocated_bytes[0].current, 0);
  EXPECT_EQ(stats.allocated_bytes[0].peak, 1024);
  EXPECT_EQ(stats.reserved_bytes[0].current, 1024);
}

}  // namespace
