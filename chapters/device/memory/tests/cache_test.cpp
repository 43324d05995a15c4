// SPDX-License-Identifier: BSD-3-Clause
// The cache alone, without Python and PyTorch's registries: also run under
// ThreadSanitizer.
#include "torch_openreg/chapters/device/memory/cache.h"
#include "torch_openreg/chapters/device/memory/tests/held.h"
#include "torch_openreg/chapters/device/tests/words_of.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_graphs.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"

#include <limits>
#include <random>
#include <thread>

namespace {

using openreg::Block;
using openreg::Cache;
using openreg::sizeClass;

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kTooMuch = size_t{1} << 60;

c10::Stream stream(int number) {
  static const auto streams = [] {
    std::vector<c10::Stream> made{openreg::defaultStream(0)};
    for (int i = 0; i < 3; ++i) made.push_back(openreg::poolStream(0, 0));
    return made;
  }();
  return streams[number];
}

int64_t current(const c10::CachingAllocator::StatArray& stats) {
  return stats[0].current;
}

TEST(Cache, a_class_has_room_for_its_requests_and_wastes_a_ninth_at_most) {
  EXPECT_EQ(sizeClass(1), 512);
  EXPECT_EQ(sizeClass(513), 1024);
  EXPECT_EQ(sizeClass(4097), 4608);
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const size_t bytes = 1 + (random() >> (24 + random() % 40));
    const size_t size = sizeClass(bytes);
    ASSERT_GE(size, bytes);
    ASSERT_EQ(size % 512, 0);
    ASSERT_EQ(sizeClass(size), size) << bytes;
    if (bytes > 4096) {
      ASSERT_LE(size - bytes, size / 9) << bytes;
    }
  }
}

TEST(Cache, a_freed_block_is_used_again_by_its_stream_alone) {
  Cache cache;
  Block* first = cache.allocate(1000, stream(0));
  std::byte* data = first->data;
  cache.free(first);
  EXPECT_EQ(cache.allocate(900, stream(0))->data, data);
  EXPECT_NE(cache.allocate(900, stream(1))->data, data);
}

TEST(Cache, neighbors_that_are_free_become_one_block_again) {
  Cache cache;
  std::vector<Block*> blocks;
  for (int i = 0; i < 10; ++i)
    blocks.push_back(cache.allocate(2 * kMiB, stream(0)));
  EXPECT_EQ(current(cache.stats().segment), 1);
  for (const int i : {1, 3, 5, 7, 9, 0, 2, 4, 6, 8}) cache.free(blocks[i]);
  EXPECT_EQ(current(cache.stats().inactive_split), 0);
  cache.allocate(20 * kMiB, stream(0));
  EXPECT_EQ(current(cache.stats().segment), 1);
}

const auto everybody = [](c10::Stream) { return true; };
const auto nobody = [](c10::Stream) { return false; };

class Pool : public testing::Test {
 protected:
  /// Whether a request of its stream may have the block at `data`.
  bool isFree(const std::byte* data) {
    cache.allocate(1000, stream(0));  // Every allocation collects what is done.
    const bool is_next = cache.allocate(1000, stream(1))->data == data;
    return is_next || cache.find(data)->free;
  }
  Cache cache;
  const Cache::PoolId pool{0, 7};
};

TEST_F(Pool, its_memory_is_nobody_elses_until_it_is_released) {
  cache.beginPool(pool, [](c10::Stream asks) { return asks == stream(1); });
  Block* mine = cache.allocate(1000, stream(1));
  Block* other = cache.allocate(1000, stream(0));
  EXPECT_EQ(mine->pool, pool);
  EXPECT_EQ(other->pool, Cache::PoolId(0, 0));
  std::byte* data = mine->data;
  cache.free(mine);
  EXPECT_EQ(cache.allocate(900, stream(1))->data, data) << "within the pool";
  cache.endPool(pool);
  Block* outside = cache.allocate(900, stream(1));
  EXPECT_EQ(outside->pool, Cache::PoolId(0, 0));
  cache.empty();
  EXPECT_EQ(current(cache.stats().segment), 3);
  cache.free(cache.find(data));
  cache.empty();
  EXPECT_EQ(current(cache.stats().segment), 3) << "a pool keeps its memory";
  cache.releasePool(pool, {});
  EXPECT_EQ(cache.find(data)->pool, Cache::PoolId(0, 0));
  cache.free(outside);
  cache.empty();
  EXPECT_EQ(current(cache.stats().segment), 1);
}

TEST_F(Pool, it_lives_until_its_last_use_is_released) {
  cache.beginPool(pool, everybody);
  cache.free(cache.allocate(1000, stream(0)));
  cache.endPool(pool);
  cache.beginPool(pool, everybody);
  cache.endPool(pool);
  cache.releasePool(pool, {});
  cache.empty();
  EXPECT_EQ(current(cache.stats().segment), 1);
  cache.releasePool(pool, {});
  cache.empty();
  EXPECT_EQ(current(cache.stats().segment), 0);
}

TEST_F(Pool, released_memory_waits_for_the_streams_that_used_it) {
  cache.beginPool(pool, everybody);
  Block* block = cache.allocate(1000, stream(1));
  std::byte* data = block->data;
  cache.free(block);
  cache.endPool(pool);
  Gate gate(stream(2));
  cache.releasePool(pool, {stream(2)});
  EXPECT_FALSE(isFree(data));
  gate.open();
  EXPECT_TRUE(isFree(data));
}

TEST_F(Pool, a_block_in_use_at_the_release_waits_when_it_is_freed) {
  cache.beginPool(pool, everybody);
  Block* block = cache.allocate(1000, stream(1));
  std::byte* data = block->data;
  cache.endPool(pool);
  cache.releasePool(pool, {stream(2)});
  Gate gate(stream(2));
  cache.free(block);
  EXPECT_FALSE(isFree(data));
  gate.open();
  EXPECT_TRUE(isFree(data));
}

TEST_F(Pool, a_block_that_waits_at_the_release_waits_for_the_new_streams_too) {
  cache.beginPool(pool, everybody);
  Block* block = cache.allocate(1000, stream(1));
  std::byte* data = block->data;
  Gate used(stream(3));
  cache.recordStream(block, stream(3));
  cache.free(block);
  cache.endPool(pool);
  Gate replay(stream(2));
  cache.releasePool(pool, {stream(2)});
  used.open();
  cache.allocate(1000, stream(0));  // Every allocation collects what is done.
  EXPECT_FALSE(isFree(data));
  replay.open();
  EXPECT_TRUE(isFree(data));
}

TEST_F(Pool, one_that_is_in_use_is_refused) {
  cache.beginPool(pool, nobody);
  EXPECT_EQ(wordsOf<c10::ValueError>([&] { cache.beginPool(pool, nobody); }),
            "Pool (0, 7) is being allocated from already; end that first.");
  cache.endPool(pool);
}

TEST_F(Pool,
       a_block_that_a_captured_stream_uses_waits_for_the_end_of_the_capture) {
  const orStream_t captured = openreg::nativeStream(stream(2));
  openreg::check(orStreamBeginCapture(captured, orStreamCaptureModeGlobal));
  cache.beginPool(pool, everybody);
  Block* block = cache.allocate(1000, stream(1));
  std::byte* data = block->data;
  cache.recordStream(block, stream(2));
  cache.free(block);
  EXPECT_NE(cache.allocate(1000, stream(1))->data, data);
  orGraph_t graph;
  openreg::check(orStreamEndCapture(captured, &graph));
  cache.endPool(pool);
  cache.beginPool(pool, everybody);
  openreg::check(orStreamSynchronize(captured));
  EXPECT_EQ(cache.allocate(1000, stream(1))->data, data);
  cache.endPool(pool);
  orGraphDestroy(graph);
}

TEST_F(Pool, what_does_not_exist_ends_and_is_released_without_an_error) {
  cache.endPool({0, 9});
  cache.releasePool({0, 9}, {});
  EXPECT_EQ(current(cache.stats().segment), 0);
}

TEST_F(Pool, released_memory_does_not_wait_for_its_own_stream) {
  cache.beginPool(pool, everybody);
  Block* block = cache.allocate(1000, stream(1));
  const std::byte* data = block->data;
  cache.free(block);
  cache.endPool(pool);
  Gate gate(stream(1));
  cache.releasePool(pool, {stream(1)});
  EXPECT_EQ(cache.allocate(1000, stream(1))->data, data);
}

TEST_F(Pool, a_full_device_fails_requests_while_any_thread_captures) {
  const size_t free = freeBytes();
  cache.free(cache.allocate(free / 5 * 4, stream(0)));
  cache.beginPool(pool, nobody);
  EXPECT_THROW(cache.allocate(free / 2, stream(1)), c10::OutOfMemoryError);
  cache.endPool(pool);
  cache.free(cache.allocate(free / 2, stream(1)));
  cache.empty();
}

TEST_F(Pool, a_full_device_fails_a_captured_request_and_waits_for_nothing) {
  const size_t free = freeBytes();
  cache.free(cache.allocate(free / 5 * 4, stream(0)));
  const orStream_t captured = openreg::nativeStream(stream(2));
  openreg::check(orStreamBeginCapture(captured, orStreamCaptureModeGlobal));
  EXPECT_THROW(cache.allocate(free / 2, stream(2)), c10::OutOfMemoryError);
  orGraph_t graph;
  EXPECT_EQ(orStreamEndCapture(captured, &graph), orSuccess);
  orGraphDestroy(graph);
  cache.free(cache.allocate(free / 2, stream(2)));
  cache.empty();
}

TEST(Cache, two_sizes_take_turns_on_a_nearly_full_device_without_waiting) {
  Cache cache;
  const size_t free = freeBytes();
  const size_t most = free / 5 * 4;
  for (int turn = 0; turn < 10; ++turn) {
    cache.free(cache.allocate(most, stream(0)));
    Block* half = cache.allocate(most / 2, stream(0));
    Block* quarter = cache.allocate(most / 4, stream(0));
    cache.free(half);
    cache.free(quarter);
  }
  EXPECT_EQ(cache.stats().num_alloc_retries, 0);
  EXPECT_EQ(cache.stats().num_device_alloc, 1);
  cache.empty();
}

TEST(Cache, small_requests_do_not_cut_up_what_large_ones_need) {
  Cache cache;
  cache.free(cache.allocate(20 * kMiB, stream(0)));
  cache.allocate(100, stream(0));
  EXPECT_EQ(current(cache.stats().inactive_split), 1);
  cache.allocate(20 * kMiB, stream(0));
  const auto stats = cache.stats();
  EXPECT_EQ(current(stats.segment), 2);
  EXPECT_EQ(stats.allocation[1].current, 1);
  EXPECT_EQ(stats.allocation[2].current, 1);
}

TEST(Cache, a_mebibyte_is_the_largest_small_request) {
  Cache cache;
  cache.allocate(kMiB, stream(0));
  EXPECT_EQ(cache.stats().allocation[1].current, 1);
  cache.allocate(kMiB + 1, stream(0));
  EXPECT_EQ(cache.stats().allocation[1].current, 1);
}

TEST(Cache, a_block_that_another_stream_uses_waits_for_it_and_for_nobody_else) {
  Cache cache;
  Gate held(stream(1));
  Block* used = cache.allocate(5000, stream(0));
  Block* unused = cache.allocate(5000, stream(0));
  std::byte* const used_data = used->data;
  std::byte* const unused_data = unused->data;
  cache.recordStream(used, stream(1));
  cache.recordStream(used, stream(2));
  cache.recordStream(unused, stream(2));
  cache.free(used);
  cache.free(unused);
  EXPECT_EQ(current(cache.stats().active), 2);
  openreg::check(orStreamSynchronize(openreg::nativeStream(stream(2))));
  EXPECT_EQ(cache.allocate(5000, stream(0))->data, unused_data);
  EXPECT_NE(cache.allocate(5000, stream(0))->data, used_data);
  held.open();
  EXPECT_EQ(cache.allocate(5000, stream(0))->data, used_data);
}

TEST(Cache, on_a_full_device_parts_are_used_again_once_other_streams_are_done) {
  const size_t free = freeBytes();
  const size_t half = sizeClass(free / 20 * 8);
  for (const c10::DeviceIndex other : {0, 1}) {
    Cache cache;
    Block* both = cache.allocate(2 * half, stream(0));
    cache.free(both);
    Block* used = cache.allocate(half, stream(0));
    Block* kept = cache.allocate(half, stream(0));
    const c10::Stream elsewhere = openreg::poolStream(other, 0);
    openreg::launch(openreg::nativeStream(elsewhere), "long",
                    [] { usleep(50'000); });
    cache.recordStream(used, elsewhere);
    cache.free(used);
    used = cache.allocate(half, stream(0));
    EXPECT_EQ(cache.stats().num_alloc_retries, 1);
    EXPECT_EQ(cache.stats().num_ooms, 0);
    cache.free(used);
    cache.free(kept);
    cache.empty();
  }
}

TEST(Cache, streams_of_one_number_on_two_devices_are_two_streams) {
  Cache cache;
  Gate held(openreg::defaultStream(1));
  Block* first = cache.allocate(1000, stream(1));
  Block* second = cache.allocate(1000, stream(1));
  cache.recordStream(first, openreg::defaultStream(1));
  cache.recordStream(second, openreg::defaultStream(0));
  cache.free(first);
  cache.free(second);
  openreg::check(orStreamSynchronize(nullptr));
  cache.free(cache.allocate(1 << 19, stream(1)));
  EXPECT_EQ(current(cache.stats().active), 1);
}

TEST(Cache, an_address_before_all_memory_is_of_no_block) {
  Cache cache;
  cache.free(cache.allocate(1000, stream(0)));
  EXPECT_EQ(cache.find(reinterpret_cast<void*>(1)), nullptr);
}

// The driver makes no event, so the host waits for all devices, and a thread of
// a device, which may not, leaves that to the host.
TEST(Cache, without_an_event_a_block_waits_for_the_device) {
  Cache cache;
  Block* block = cache.allocate(1000, stream(0));
  const std::byte* data = block->data;
  cache.recordStream(block, stream(1));
  Gate gate(stream(1));
  std::thread opener([&gate] {
    usleep(50'000);
    gate.open();
  });
  openreg::check(orInject("create:1"));
  cache.free(block);
  openreg::check(orInject(""));
  opener.join();
  EXPECT_EQ(cache.allocate(1000, stream(0))->data, data);

  Block* other = cache.allocate(1000, stream(0));
  const std::byte* its_data = other->data;
  cache.recordStream(other, stream(1));
  openreg::launch(openreg::nativeStream(stream(2)), "frees", [&cache, other] {
    openreg::check(orInject("create:1"));
    cache.free(other);
    openreg::check(orInject(""));
  });
  openreg::check(orDeviceSynchronize());
  EXPECT_EQ(cache.allocate(1000, stream(0))->data, its_data);
}

TEST(Cache, without_an_event_a_block_outlasts_a_capture_that_forbids_to_wait) {
  Cache cache;
  Block* block = cache.allocate(1000, stream(0));
  const std::byte* data = block->data;
  cache.recordStream(block, stream(1));
  Gate gate(stream(1));
  const orStream_t captured = openreg::nativeStream(stream(2));
  openreg::check(orStreamBeginCapture(captured, orStreamCaptureModeGlobal));
  openreg::check(orInject("create:1"));
  cache.free(block);
  openreg::check(orInject(""));
  EXPECT_NE(cache.allocate(1000, stream(0))->data, data);
  orGraph_t graph = nullptr;
  EXPECT_NE(orStreamEndCapture(captured, &graph), orSuccess);
  gate.open();
  EXPECT_EQ(cache.allocate(1000, stream(0))->data, data);
}

TEST(Cache, emptying_gives_back_whole_segments_only) {
  Cache cache;
  Block* kept = cache.allocate(2 * kMiB, stream(0));
  cache.free(cache.allocate(2 * kMiB, stream(0)));
  cache.free(cache.allocate(100, stream(0)));
  EXPECT_EQ(current(cache.stats().reserved_bytes), 22 * kMiB);
  cache.empty();
  EXPECT_EQ(current(cache.stats().reserved_bytes), 20 * kMiB);
  cache.free(kept);
  cache.empty();
  EXPECT_EQ(current(cache.stats().reserved_bytes), 0);
  EXPECT_EQ(cache.stats().num_device_free, 2);
}

TEST(Cache, a_full_device_is_emptied_and_then_says_how_it_stands) {
  Cache cache;
  size_t free, total;
  openreg::check(orMemGetInfo(&free, &total));
  cache.free(cache.allocate(free / 2, stream(0)));
  Block* most = cache.allocate(free / 4 * 3, stream(1));
  EXPECT_EQ(cache.stats().num_alloc_retries, 1);
  EXPECT_EQ(cache.stats().num_ooms, 0);
  Block* small = cache.allocate(1000, stream(0));
  const std::string held = std::to_string(most->size + 1024);
  for (const size_t bytes : {total, std::numeric_limits<size_t>::max()}) {
    const std::string words = wordsOf<c10::OutOfMemoryError>(
        [&] { cache.allocate(bytes, stream(0)); });
    for (const std::string& part :
         {std::string("and no free block of "),
          "The request was for " + std::to_string(bytes) + " bytes.",
          "PyTorch holds " + held + " bytes in tensors",
          std::string(" 0 bytes that other streams still use, and "),
          std::to_string(2 * kMiB - 1024) + " bytes in free parts of larger",
          std::string("torch.openreg.memory_snapshot() shows them.")}) {
      EXPECT_NE(words.find(part), std::string::npos) << part << "\n" << words;
    }
  }
  EXPECT_EQ(cache.stats().num_ooms, 2);
  cache.free(small);
  cache.free(most);
  EXPECT_TRUE(cache.allocate(free / 2, stream(0)));
  cache.empty();
}

TEST(Cache, what_fits_is_given_even_if_its_size_class_does_not_fit) {
  Cache cache;
  const size_t free = freeBytes();
  const size_t most = free - 8 * kMiB - 100;
  ASSERT_GT(sizeClass(most), free);
  for (int again = 0; again < 2; ++again) {
    Block* block = cache.allocate(most, stream(0));
    EXPECT_EQ(block->size, (most + 511) / 512 * 512);
    EXPECT_EQ(current(cache.stats().reserved_bytes), block->size);
    cache.free(block);
  }
  EXPECT_EQ(cache.stats().num_ooms, 0);
  cache.empty();
  EXPECT_EQ(current(cache.stats().reserved_bytes), 0);
}

TEST(Cache, a_segment_that_the_driver_does_not_free_is_kept_and_the_others_go) {
  Cache cache;
  Block* blocks[3];
  for (Block*& block : blocks) block = cache.allocate(30 * kMiB, stream(0));
  void* freed = blocks[1]->data;
  const size_t size = blocks[1]->size;
  for (Block* block : blocks) cache.free(block);
  openreg::check(orFree(freed));
  for (int again = 0; again < 2; ++again) {
    EXPECT_THROW(cache.empty(), c10::ValueError);
    EXPECT_EQ(cache.snapshot().size(), 1);
    EXPECT_EQ(current(cache.stats().reserved_bytes), size);
    EXPECT_EQ(cache.stats().num_device_free, 2);
  }
}

TEST(Cache, a_full_device_asks_others_to_give_back_before_it_waits) {
  static Cache cache;
  static Block* spare = nullptr;
  openreg::onFullDevice([] {
    if (Block* block = std::exchange(spare, nullptr)) cache.free(block);
  });
  const size_t free = freeBytes();
  const size_t most = sizeClass(free / 5 * 3);
  Block* block = cache.allocate(most, stream(0));
  openreg::launch(openreg::nativeStream(stream(1)), "long",
                  [] { usleep(50'000); });
  cache.recordStream(block, stream(1));
  spare = block;
  block = cache.allocate(most, stream(0));  // Used again, after its mark.
  EXPECT_EQ(cache.stats().num_device_alloc, 1);
  spare = block;
  block = cache.allocate(most, stream(1));  // Given back to the device.
  EXPECT_EQ(cache.stats().num_device_alloc, 2);
  EXPECT_EQ(cache.stats().num_alloc_retries, 2);
  EXPECT_EQ(cache.stats().num_ooms, 0);
  EXPECT_THROW(cache.allocate(most, stream(0)), c10::OutOfMemoryError);
  EXPECT_EQ(cache.stats().num_alloc_retries, 3);
  EXPECT_EQ(cache.stats().num_ooms, 1);
  cache.free(block);
  cache.empty();
  openreg::onFullDevice([] {});
}

TEST(Cache, a_full_device_leaves_what_a_kernel_refused_to_its_stream) {
  // The kernel ends when the device is found full, so its block is waited for.
  static std::atomic<bool> full;
  full = false;
  openreg::onFullDevice([] { full = true; });
  Cache cache;
  Block* block = cache.allocate(1000, stream(0));
  cache.recordStream(block, stream(1));
  openreg::launch(openreg::nativeStream(stream(1)), "refuses", [] {
    while (!full) usleep(10);
    throw openreg::Refusal("such numbers");
  });
  cache.free(block);
  EXPECT_THROW(cache.allocate(kTooMuch, stream(0)), c10::OutOfMemoryError);
  cache.empty();
  EXPECT_EQ(wordsOf([] { stream(1).synchronize(); }),
            "openreg:0 could not run refuses: such numbers");
  openreg::onFullDevice([] {});
}

TEST(Cache, a_snapshot_shows_each_segment_and_what_is_in_it) {
  Cache cache;
  Gate held(stream(1));
  Block* used = cache.allocate(3000, stream(0));
  Block* waiting = cache.allocate(100, stream(0));
  cache.recordStream(waiting, stream(1));
  cache.free(waiting);
  const auto segments = cache.snapshot();
  ASSERT_EQ(segments.size(), 1);
  EXPECT_EQ(segments[0].address, reinterpret_cast<size_t>(used->data));
  EXPECT_EQ(segments[0].total_size, 2 * kMiB);
  EXPECT_EQ(segments[0].allocated_size, 3072);
  EXPECT_EQ(segments[0].requested_size, 3000);
  EXPECT_EQ(segments[0].active_size, 3584);
  EXPECT_FALSE(segments[0].is_large);
  const auto& blocks = segments[0].blocks;
  ASSERT_EQ(blocks.size(), 3);
  EXPECT_TRUE(blocks[0].allocated && blocks[0].active);
  EXPECT_TRUE(!blocks[1].allocated && blocks[1].active);
  EXPECT_TRUE(!blocks[2].allocated && !blocks[2].active);
}

TEST(Cache, peaks_and_sums_are_forgotten_when_asked) {
  Cache cache;
  cache.free(cache.allocate(1000, stream(0)));
  EXPECT_EQ(cache.stats().allocated_bytes[0].peak, 1024);
  EXPECT_EQ(cache.stats().requested_bytes[0].allocated, 1000);
  cache.resetPeakStats();
  cache.resetAccumulatedStats();
  const auto stats = cache.stats();
  EXPECT_EQ(stats.allocated_bytes[0].peak, 0);
  EXPECT_EQ(stats.requested_bytes[0].allocated, 0);
  EXPECT_EQ(stats.num_device_alloc, 0);
}

/// What must be true of every block, kept beside the cache.
class Model {
 public:
  explicit Model(unsigned seed) : random_(seed) {}

  void step() {
    const unsigned choice = random_() % 1000;
    if (choice < 480 && live_.size() < 300) {
      allocate();
    } else if (choice < 900) {
      free();
    } else if (choice < 980) {
      if (!live_.empty()) record(*live_[random_() % live_.size()]);
    } else if (choice < 998) {
      turnGate();
    } else {
      gate_.reset();  // Giving memory back waits for the device.
      held_.clear();
      cache_.empty();
    }
  }

  void allocate() {
    const size_t bytes = 1 + random_() % (size_t{1} << (8 + random_() % 16));
    const c10::Stream on = stream(random_() % 3);
    Block* block = cache_.allocate(bytes, on);
    const uintptr_t begin = reinterpret_cast<uintptr_t>(block->data);
    const uintptr_t end = begin + block->size;
    EXPECT_EQ(begin % 512, 0);
    EXPECT_GE(block->size, bytes);
    EXPECT_EQ(block->stream, on);
    for (const auto* taken : {&used_, &held_}) {
      auto next = taken->upper_bound(begin);
      if (next != taken->end()) {
        ASSERT_LE(end, next->first);
      }
      if (next != taken->begin()) {
        ASSERT_LE(std::prev(next)->second, begin);
      }
    }
    used_[begin] = end;
    live_.push_back(block);
    allocated_ += block->size;
    requested_ += bytes;
  }

  void free() {
    if (live_.empty()) return;
    std::swap(live_[random_() % live_.size()], live_.back());
    Block* block = live_.back();
    live_.pop_back();
    const auto begin = reinterpret_cast<uintptr_t>(block->data);
    if (gate_ && recorded_.count(block)) held_[begin] = begin + block->size;
    recorded_.erase(block);
    used_.erase(begin);
    allocated_ -= block->size;
    requested_ -= block->requested;
    cache_.free(block);
  }

  void record(Block& block) {
    const c10::Stream other = stream(random_() % 4);
    cache_.recordStream(&block, other);
    if (other == stream(3)) recorded_.insert(&block);
  }

  // Stream 3 allocates nothing, and is held now and then.
  void turnGate() {
    if (gate_) {
      gate_.reset();
      held_.clear();
    } else {
      gate_.emplace(stream(3));
    }
  }

  void compare() {
    const auto stats = cache_.stats();
    EXPECT_EQ(current(stats.allocation), live_.size());
    EXPECT_EQ(current(stats.allocated_bytes), allocated_);
    EXPECT_EQ(current(stats.requested_bytes), requested_);
    EXPECT_GE(current(stats.active_bytes), allocated_);
    size_t reserved = 0, active = 0, split = 0;
    for (const auto& segment : cache_.snapshot()) {
      reserved += segment.total_size;
      active += segment.active_size;
      for (const auto& block : segment.blocks) {
        if (!block.active && segment.blocks.size() > 1) split += block.size;
      }
    }
    EXPECT_EQ(current(stats.reserved_bytes), reserved);
    EXPECT_EQ(current(stats.active_bytes), active);
    EXPECT_EQ(current(stats.inactive_split_bytes), split);
  }

  void finish() {
    gate_.reset();
    held_.clear();
    while (!live_.empty()) free();
    openreg::check(orDeviceSynchronize());
    cache_.empty();
    compare();
    EXPECT_EQ(current(cache_.stats().reserved_bytes), 0);
    EXPECT_TRUE(cache_.snapshot().empty());
  }

 private:
  std::mt19937 random_;
  Cache cache_;
  std::vector<Block*> live_;
  std::map<uintptr_t, uintptr_t> used_;
  /// Freed while the gate was closed, and used by the stream behind it.
  std::map<uintptr_t, uintptr_t> held_;
  std::set<Block*> recorded_;
  std::optional<Gate> gate_;
  size_t allocated_ = 0, requested_ = 0;
};

TEST(Cache, a_million_random_steps_agree_with_the_model_and_leak_nothing) {
  const size_t before = freeBytes();
  for (unsigned seed = 0; seed < 10; ++seed) {
    Model model(seed);
    for (int i = 0; i < 100'000 && !HasFailure(); ++i) {
      model.step();
      if (i % 1000 == 0) model.compare();
    }
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    model.finish();
  }
  EXPECT_EQ(freeBytes(), before);
}

TEST(Cache,
     memory_of_a_stream_that_was_destroyed_is_given_back_when_it_is_idle) {
  Cache cache;
  const size_t before = freeBytes();
  orStream_t handle;
  openreg::check(orStreamCreate(&handle));
  const c10::Stream made = openreg::streamOfHandle(handle, 0);
  Block* own = cache.allocate(kMiB, made);
  Block* used = cache.allocate(kMiB, stream(0));
  cache.recordStream(used, made);
  std::atomic<bool> ran{false};
  openreg::launch(handle, "long", [&ran] {
    usleep(50'000);
    ran = true;
  });
  openreg::check(orStreamDestroy(handle));
  cache.free(used);  // No event can be recorded: it waits for the device.
  EXPECT_TRUE(ran);
  cache.free(own);
  cache.empty();
  EXPECT_EQ(current(cache.stats().reserved_bytes), 0);
  EXPECT_EQ(freeBytes(), before);
}

TEST(Cache, threads_share_it_and_its_statistics_add_up) {
  Cache cache;
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done) {
      const auto stats = cache.stats();
      EXPECT_GE(current(stats.reserved_bytes), current(stats.active_bytes));
      cache.resetPeakStats();
      cache.snapshot();
      cache.empty();
    }
  });
  std::vector<std::thread> threads;
  for (int number = 0; number < 3; ++number) {
    threads.emplace_back([&, number] {
      std::mt19937 random(number);
      std::vector<Block*> mine;
      for (int i = 0; i < 5000; ++i) {
        if (random() % 2 || mine.empty()) {
          mine.push_back(
              cache.allocate(1 + random() % 100'000, stream(number)));
          if (random() % 8 == 0) cache.recordStream(mine.back(), stream(3));
        } else {
          cache.free(mine.back());
          mine.pop_back();
        }
      }
      for (Block* block : mine) cache.free(block);
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  reader.join();
  openreg::check(orDeviceSynchronize());
  cache.empty();
  EXPECT_EQ(current(cache.stats().allocation), 0);
  EXPECT_EQ(current(cache.stats().reserved_bytes), 0);
}

TEST(Cache, a_kernel_may_free_memory_while_somebody_asks_for_some) {
  // The last owner of a block may be a kernel's argument: then it is freed on
  // the device's thread, while the host holds the cache open.
  Cache cache;
  for (int i = 0; i < 200; ++i) {
    std::shared_ptr<Block> block(cache.allocate(1000, stream(0)),
                                 [&](Block* last) { cache.free(last); });
    cache.recordStream(block.get(), stream(1));
    openreg::launch(openreg::nativeStream(stream(1)), "owner", [block] {});
    block.reset();
    cache.free(cache.allocate(1000, stream(0)));
    cache.empty();
  }
  openreg::check(orDeviceSynchronize());
}

TEST(Cache, a_kernel_may_free_memory_behind_which_a_long_queue_waits) {
  Cache cache;
  std::shared_ptr<Block> block(cache.allocate(1000, stream(0)),
                               [&](Block* last) { cache.free(last); });
  cache.recordStream(block.get(), stream(1));
  std::atomic<bool> open{false};
  std::thread host([&, block = std::move(block)]() mutable {
    openreg::launch(openreg::nativeStream(stream(1)), "owner",
                    [&open, block = std::move(block)] {
                      while (!open) usleep(10);
                    });
    for (int i = 0; i < 5000; ++i) {
      openreg::launch(openreg::nativeStream(stream(1)), "next", [] {});
    }
  });
  usleep(50'000);  // The queue is full by now, and the host waits.
  open = true;
  host.join();
  openreg::check(orDeviceSynchronize());
}

}  // namespace
