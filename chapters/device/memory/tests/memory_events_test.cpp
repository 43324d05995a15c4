// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/memory/memory_events.h"

#include "torch_openreg/chapters/device/memory/allocator.h"
#include "torch_openreg/chapters/device/memory/tests/held.h"

#include <gtest/gtest.h>

#include <vector>

namespace {

using openreg::allocator;
using openreg::MemoryEvent;
using Action = MemoryEvent::Action;

std::vector<MemoryEvent> told;

/// Listens while it lives.
struct Listen {
  Listen() {
    allocator().emptyCache();
    told.clear();
    openreg::onMemoryEvent(
        [](const MemoryEvent& event) { told.push_back(event); });
  }
  ~Listen() { openreg::onMemoryEvent(nullptr); }
};

std::vector<Action> actions() {
  std::vector<Action> found;
  for (const MemoryEvent& event : told) found.push_back(event.action);
  return found;
}

const std::vector kWholeLife{Action::SEGMENT_ALLOC, Action::ALLOC,
                             Action::FREE_REQUESTED, Action::FREE_COMPLETED,
                             Action::SEGMENT_FREE};

TEST(MemoryEvents, the_life_of_a_block_is_told_in_its_order) {
  Listen listen;
  const void* data;
  {
    c10::DataPtr block = allocator().allocate(1000);
    data = block.get();
  }
  allocator().emptyCache();
  EXPECT_EQ(actions(), kWholeLife);
  for (const MemoryEvent& event : told) {
    EXPECT_EQ(event.data, data);
    EXPECT_EQ(event.device, 0);
    const bool segment = event.action == Action::SEGMENT_ALLOC ||
                         event.action == Action::SEGMENT_FREE;
    EXPECT_EQ(event.size, segment ? size_t{2} << 20 : 1000);
  }
}

TEST(MemoryEvents, a_free_completes_when_the_other_stream_is_done) {
  const c10::Stream other = openreg::poolStream(0, 0);
  Gate held(other);
  Listen listen;
  {
    c10::DataPtr block = allocator().allocate(1000);
    allocator().recordStream(block, other);
  }
  EXPECT_EQ(told.back().action, Action::FREE_REQUESTED);
  held.open();
  allocator().emptyCache();
  EXPECT_EQ(actions(), kWholeLife);
}

TEST(MemoryEvents, a_full_device_is_told_with_the_size_that_did_not_fit) {
  Listen listen;
  EXPECT_THROW(allocator().allocate(size_t{1} << 60), c10::OutOfMemoryError);
  ASSERT_EQ(actions(), std::vector{Action::OOM});
  EXPECT_EQ(told[0].size, size_t{1} << 60);
  EXPECT_EQ(told[0].data, nullptr);
}

TEST(MemoryEvents,
     a_block_that_a_pool_gives_back_was_told_of_when_it_was_freed) {
  Listen listen;
  const c10::MempoolId_t pool{0, 7};
  openreg::beginPool(0, pool, [](c10::Stream) { return true; });
  allocator().allocate(1000);
  openreg::endPool(0, pool);
  const size_t before = told.size();
  openreg::releasePool(0, pool, {});
  EXPECT_EQ(told.size(), before);
  allocator().emptyCache();
  EXPECT_EQ(told.back().action, Action::SEGMENT_FREE);
}

TEST(MemoryEvents, only_what_is_handed_out_is_told_to_who_asked_for_that) {
  static std::vector<size_t> sizes;
  openreg::onHandOut([](const void*, size_t size) { sizes.push_back(size); });
  allocator().allocate(1000);
  allocator().emptyCache();
  openreg::onHandOut(nullptr);
  EXPECT_EQ(sizes, std::vector<size_t>{1024});
}

TEST(MemoryEvents, nothing_is_told_without_a_listener) {
  { Listen listen; }
  told.clear();
  allocator().allocate(1000);
  EXPECT_TRUE(told.empty());
}

}  // namespace
