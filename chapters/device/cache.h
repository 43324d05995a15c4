// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "chapters/device/stream.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <list>
#include <map>
#include <mutex>
#include <vector>

namespace openreg {

// [device.cache.block] A piece of device memory, and the streams that use it.
struct Block {
  void* data;
  size_t size;
  size_t requested;
  c10::Stream stream;
  std::vector<c10::Stream> other_streams;
};

/// Sizes come in classes, multiples of 512 bytes and from 2 KiB on four to each
/// power of two, so that a freed block fits the next request of about its size.
size_t sizeClass(size_t bytes);

// [device.cache.waiting] A block that other streams used waits for each of them.
/// Records an event on each of the block's other streams, and is over when all
/// of them have happened.
class Waiting {
 public:
  explicit Waiting(Block* freed);
  bool over();
  Block* block() const { return block_; }

 private:
  Block* block_;
  std::vector<orEvent_t> events_;
};

// [device.cache] One device's memory: freed blocks are kept, by stream and size.
/// What a stream frees, the same stream may use at once, without waiting: its
/// work on the old tensor is in the queue before its work on the new one.
/// Thread-safe. The device must be current when memory is allocated.
class Cache {
 public:
  using Stats = c10::CachingDeviceAllocator::DeviceStats;

  /// @throws c10::OutOfMemoryError if there is none left, even after everything
  /// that nobody uses was given back.
  Block* allocate(size_t bytes, c10::Stream stream);
  void free(Block* block);
  /// Gives everything that nobody uses back to the device.
  void empty();
  /// The block is not used again before `stream` has done what it has to do
  /// now.
  void recordStream(Block* block, c10::Stream stream);

  Stats stats();
  void resetPeakStats();
  void resetAccumulatedStats();

  // [device.cache.state] What is free, what still waits, and the statistics.
 private:
  using Kept = std::map<std::pair<c10::StreamId, size_t>, std::vector<Block*>>;

  Block* reuse(size_t size, c10::Stream stream);
  Block* fromDevice(size_t size, c10::Stream stream);
  void keep(Block* block);
  void collect();

  std::mutex mutex_;
  Kept kept_;
  std::list<Waiting> waiting_;
  Stats stats_;
};

// [-]
}  // namespace openreg
