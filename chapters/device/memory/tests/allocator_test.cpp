// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/memory/allocator.h"

#include "torch_openreg/chapters/device/memory/tests/held.h"
#include "torch_openreg/chapters/device/tests/words_of.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <thread>

namespace {

using openreg::allocator;
using openreg::kDeviceType;

TEST(Allocator, memory_is_of_the_current_device) {
  c10::DeviceGuard guard({kDeviceType, 1});
  c10::DataPtr data = allocator().allocate(100);
  EXPECT_EQ(data.device().index(), 1);
  orPointerAttributes where;
  openreg::check(orPointerGetAttributes(&where, data.get()));
  EXPECT_EQ(where.device, 1);
}

TEST(Allocator, memory_is_used_again_in_the_order_of_the_current_stream) {
  void* first = allocator().allocate(1000).get();
  EXPECT_EQ(allocator().allocate(900).get(), first);
  c10::StreamGuard guard(openreg::poolStream(0, 0));
  EXPECT_NE(allocator().allocate(1000).get(), first);
}

TEST(Allocator, nothing_needs_no_memory) {
  c10::DataPtr none = allocator().allocate(0);
  EXPECT_EQ(none.get(), nullptr);
  EXPECT_EQ(none.device().type(), kDeviceType);
  allocator().recordStream(none, openreg::poolStream(0, 0));
}

TEST(Allocator, a_clone_has_the_bytes_in_memory_of_its_own) {
  c10::DataPtr data = allocator().allocate(6);
  openreg::check(orMemcpy(data.get(), "bytes", 6, orMemcpyHostToDevice));
  c10::DataPtr copy = allocator().clone(data.get(), 6);
  EXPECT_NE(copy.get(), data.get());
  openreg::check(orMemset(data.get(), 0, 6));
  char bytes[6] = {};
  openreg::check(orMemcpy(bytes, copy.get(), 6, orMemcpyDeviceToHost));
  EXPECT_STREQ(bytes, "bytes");
}

/// A stream is recorded for this place in a block, which is then freed.
void expectThatItIsKept(int offset) {
  const c10::Stream other = openreg::poolStream(0, 0);
  Gate held(other);
  c10::DataPtr before = allocator().allocate(5000);
  c10::DataPtr data = allocator().allocate(5000);
  char* first = static_cast<char*>(data.get());
  allocator().recordStream({first + offset, data.device()}, other);
  data.clear();
  EXPECT_NE(allocator().allocate(5000).get(), first);
}

TEST(Allocator, a_recorded_stream_is_waited_for) { expectThatItIsKept(0); }

TEST(Allocator, a_part_of_a_block_stands_for_the_block) {
  expectThatItIsKept(4999);
}

TEST(Allocator, memory_of_the_driver_needs_no_record) {
  void* theirs;
  openreg::check(orMalloc(&theirs, 100));
  allocator().recordStream({theirs, c10::Device(kDeviceType, 0)},
                           openreg::defaultStream(0));
  openreg::check(orFree(theirs));
}

TEST(Allocator, a_size_that_was_negative_is_no_lack_of_memory) {
  expectError<c10::ValueError>(
      "No memory has 18446744073709551615 bytes; with a sign this is -1, but a "
      "size is 0 or more.",
      [] { allocator().allocate(-1); });
}

TEST(Allocator, foreign_memory_and_foreign_streams_are_refused) {
  c10::DataPtr mine = allocator().allocate(100);
  int host = 0;
  c10::DataPtr foreign(&host, c10::Device(kDeviceType, 0));
  expectError<c10::ValueError>(
      "was not allocated on an openreg device, so no stream can be recorded",
      [&] { allocator().recordStream(foreign, openreg::defaultStream(0)); });
  expectError<c10::ValueError>("The stream is of cpu; openreg can use", [&] {
    allocator().recordStream(
        mine, c10::Stream(c10::Stream::DEFAULT, c10::Device(c10::kCPU)));
  });
  const auto record = [&](c10::DeviceIndex index, c10::StreamId number) {
    allocator().recordStream(
        mine, c10::Stream(c10::Stream::UNSAFE, {kDeviceType, index}, number));
  };
  expectError<c10::ValueError>("Stream 0x3039 does not exist",
                               [&] { record(0, 12345); });
  expectError<c10::ValueError>("is of openreg:1, not of openreg:0.", [&] {
    record(0, openreg::poolStream(1, 0).id());
  });
}

class Watch : public c10::MemoryReportingInfoBase {
 public:
  bool memoryProfilingEnabled() const override { return true; }
  void reportMemoryUsage(void*, int64_t bytes, size_t allocated, size_t,
                         c10::Device device) override {
    EXPECT_EQ(device, c10::Device(kDeviceType, 0));
    changes.push_back(bytes);
    held.push_back(allocated);
  }
  void reportOutOfMemory(int64_t bytes, size_t, size_t, c10::Device) override {
    refused.push_back(bytes);
  }
  std::vector<int64_t> changes, refused;
  std::vector<size_t> held;
};

TEST(Allocator, the_profiler_is_told_of_every_change) {
  auto watch = std::make_shared<Watch>();
  c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, watch);
  { c10::DataPtr data = allocator().allocate(1000); }
  EXPECT_EQ(watch->changes, (std::vector<int64_t>{1024, -1024}));
  EXPECT_EQ(watch->held[0] - watch->held[1], 1024);
  const auto total = allocator().getMemoryInfo(0).second;
  EXPECT_THROW(allocator().allocate(total + 1), c10::OutOfMemoryError);
  EXPECT_EQ(watch->refused, std::vector<int64_t>{int64_t(total + 1)});
}

TEST(Allocator, emptying_gives_back_what_is_not_used_on_every_device) {
  for (const c10::DeviceIndex index : {0, 1}) {
    c10::DeviceGuard guard({kDeviceType, index});
    { c10::DataPtr data = allocator().allocate(1000); }
    EXPECT_GT(allocator().getDeviceStats(index).reserved_bytes[0].current, 0);
  }
  allocator().emptyCache();
  for (const c10::DeviceIndex index : {0, 1}) {
    EXPECT_EQ(allocator().getDeviceStats(index).reserved_bytes[0].current, 0);
  }
  EXPECT_TRUE(openreg::memorySnapshot().empty());
}

TEST(Allocator, forked_children_leave_the_memory_to_their_parent) {
  std::atomic<bool> done{false};
  std::thread busy([&] {
    while (!done) allocator().allocate(1000);
  });
  for (int i = 0; i < 50; ++i) {
    c10::DataPtr data = allocator().allocate(1000);
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      data.clear();
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
  }
  done = true;
  busy.join();
}

}  // namespace
