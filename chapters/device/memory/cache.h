// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/device/memory/bins.h"
#include "torch_openreg/chapters/device/streams/stream.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace openreg {

// [device.cache] One device's memory: freed blocks are kept, by stream and by size.
/// A stream may reuse at once, without waiting, what it has freed: its work on
/// the old tensor precedes its work on the new one in the queue.
/// Thread-safe. The device must be current for `allocate` and `empty`.
class Cache {
 public:
  /// The types in which `torch.accelerator` reports memory.
  using Stats = c10::CachingDeviceAllocator::DeviceStats;
  using Segment = c10::CachingDeviceAllocator::SegmentInfo;  ///< and its blocks

  /// @throws c10::OutOfMemoryError if the device has none left even after all
  /// unused segments went back to it.
  Block* allocate(size_t bytes, c10::Stream stream);
  /// Work that is enqueued already may still use the block.
  void free(Block* block);
  /// Gives all unused segments back to the device. A segment that the driver
  /// refuses to free stays in the cache.
  /// @throws the driver's refusal, after the other segments were freed.
  void empty();
  /// The block is not reused before `stream` has completed the work that is
  /// enqueued when the block is freed.
  void recordStream(Block* block, c10::Stream stream);
  /// The streams that are recorded for the block, and forgets them.
  std::vector<c10::Stream> takeRecordedStreams(Block* block);
  /// The block that contains the address `data`; null if no block of this cache
  /// does.
  Block* find(const void* data);

  // [device.cache.pools] A pool is memory that is set aside for one user, who gets no other memory.
  using PoolId = c10::MempoolId_t;  ///< {0, 0} is no pool
  /// Serves requests on the streams that `claims` accepts from pool `id`, until
  /// `endPool`. A pool comes into being with its first use. `claims` must not
  /// allocate. @throws c10::ValueError if requests go to the pool already.
  void beginPool(PoolId id, std::function<bool(c10::Stream)> claims);
  /// Ends that, and does `retireCaptured`. The pool keeps its memory.
  void endPool(PoolId id);
  /// A capture has ended: freed blocks that waited for it wait for events now.
  void retireCaptured();
  /// Whether requests to any cache go to a pool at present.
  static bool isAnyPoolInUse() { return pools_in_use_ > 0; }
  /// Ends one use of the pool; each `beginPool` is one. After the last, its
  /// memory is for everybody, as soon as the `streams` of all releases have
  /// completed the work that is enqueued now.
  void releasePool(PoolId id, const std::vector<c10::Stream>& streams);

  // [device.cache.ask] What the cache reports about itself.
  /// As `torch.accelerator.memory_stats` reports them.
  Stats stats();
  /// The peaks become the present values.
  void resetPeakStats();
  /// The sums over time become 0.
  void resetAccumulatedStats();
  /// Every segment, and the blocks in it.
  std::vector<Segment> snapshot();

  // [device.cache.state] Pools hold free blocks; marks are what freed blocks wait for.
 private:
  /// A point in a stream that a freed block waits for.
  struct Mark {
    orEvent_t event;
    Block* block;
  };
  using Lock = std::unique_lock<std::mutex>;

  /// Free blocks, by stream and by size: true is for small requests.
  struct Pool {
    std::map<std::pair<c10::StreamId, bool>, Bins> bins;
    int uses = 0;
    /// Of the uses that were released.
    std::vector<c10::Stream> streams{};
  };

  PoolId poolFor(c10::Stream stream);
  Block* reuse(size_t size, c10::Stream stream, PoolId pool);
  Block* fromDevice(size_t bytes, size_t size, c10::Stream stream, PoolId pool);
  Block* addSegment(void* data, size_t wanted, bool small, c10::Stream stream,
                    PoolId pool);
  void split(Block* block, size_t size);
  void retire(Block* block);
  void freeBlock(Block* block);
  void absorbNext(Block* block);
  void removeSegment(Block* block);
  void giveBackGuardedBlocks();
  void addFree(Block* block);
  void removeFree(Block* block);
  void collect();
  std::vector<Block*> collectPassed();
  void waitForMarks();
  std::string outOfMemory(size_t wanted) const;

  // [device.cache.members] One lock guards the free blocks, the blocks that wait, and the statistics.
  std::mutex mutex_;
  /// Held while marks are queried; taken before `mutex_`.
  std::mutex collecting_;
  /// The pool of everybody, {0, 0}, and those that are set aside.
  std::map<PoolId, Pool> pools_;
  /// Which requests go to which pool.
  std::map<PoolId, std::function<bool(c10::Stream)>> claims_;
  /// Of all caches.
  static inline std::atomic<int> pools_in_use_{0};
  /// Freed blocks that wait for the end of a capture.
  std::vector<Block*> captured_;
  /// Blocks that have left the cache and go back to the driver, while memory is
  /// guarded.
  std::vector<Block*> guarded_;
  /// By stream, and nearly in its order: an older mark behind a newer one waits
  /// a little longer.
  std::map<orStream_t, std::deque<Mark>> marks_;
  /// The first block of each segment, by its address.
  std::map<const void*, Block*> segments_;
  Stats stats_;

  // [device.cache.count] Each statistic counts all blocks, the small and the large ones.
  using StatArray = c10::CachingAllocator::StatArray;

  static void increase(StatArray& stats, const Block* block, size_t amount) {
    stats[0].increase(amount);
    stats[block->small ? 1 : 2].increase(amount);
  }
  static void decrease(StatArray& stats, const Block* block, size_t amount) {
    stats[0].decrease(amount);
    stats[block->small ? 1 : 2].decrease(amount);
  }
};

// [device.cache.full] Before a request fails, other holders of memory are asked to release some.
/// Sets the function that a cache calls when its device has no memory left,
/// before it waits for any stream. The cache then looks again for a free block.
/// `give_back` runs on the thread that asked for memory, perhaps on several at
/// once, and without a lock of the cache. It must not throw. A later call
/// replaces it.
void onFullDevice(void (*give_back)());

// [-]
}  // namespace openreg
