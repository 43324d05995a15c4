// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/memory/cache.h"
#include "torch_openreg/common/guarded.h"
#include "torch_openreg/chapters/device/memory/memory_events.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/waiting.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace openreg {
namespace {

// [device.cache.segment] The driver provides large segments, and requests take parts of them.
constexpr size_t kMiB = size_t{1} << 20;

bool isSmall(size_t size) { return size <= kMiB; }

size_t segmentSize(size_t size) {
  if (memoryIsGuarded()) return size;
  return isSmall(size) ? 2 * kMiB : std::max(size, 20 * kMiB);
}

/// The driver rounds to this too, so no byte is lost. No device has the largest
/// sizes: they must not overflow.
size_t multipleOf512(size_t bytes) {
  return bytes > SIZE_MAX - 511 ? bytes : (bytes + 511) / 512 * 512;
}

/// A rest that is smaller than this stays with its block.
size_t leastRest(const Block* block) { return block->small ? 512 : kMiB; }

// [-]
}  // namespace

// [device.cache.allocate] A request is served from the cache if possible, and otherwise by the driver.
Block* Cache::allocate(size_t bytes, c10::Stream stream) {
  const size_t size = memoryIsGuarded() ? bytes : sizeClass(bytes);
  Lock lock(mutex_);
  if (!marks_.empty()) {
    lock.unlock();
    collect();
    lock.lock();
  }
  const PoolId pool = poolFor(stream);
  Block* block = reuse(size, stream, pool);
  if (!block) {
    lock.unlock();
    block = fromDevice(bytes, size, stream, pool);
    lock.lock();
  }
  block->requested = bytes;
  increase(stats_.allocation, block, 1);
  increase(stats_.allocated_bytes, block, block->size);
  increase(stats_.requested_bytes, block, bytes);
  increase(stats_.active, block, 1);
  increase(stats_.active_bytes, block, block->size);
  lock.unlock();
  tellOfMemory(MemoryEvent::Action::ALLOC, block, bytes);
  return block;
}

// [device.cache.reuse] A request takes only free blocks of its own stream, size and pool.
Block* Cache::reuse(size_t size, c10::Stream stream, PoolId pool) {
  if (memoryIsGuarded()) return nullptr;
  auto& all = pools_[pool].bins;
  auto bins = all.find({stream.id(), isSmall(size)});
  if (bins == all.end()) return nullptr;
  Block* block = bins->second.find(size);
  if (!block) return nullptr;
  removeFree(block);
  split(block, size);
  return block;
}

// [device.cache.split] What a request leaves over becomes a free block.
void Cache::split(Block* block, size_t size) {
  if (block->size < size + leastRest(block)) return;
  auto* rest = new Block{block->data + size, block->size - size, block->stream,
                         block->small,       block->bins,        block->pool};
  rest->before = block;
  rest->after = std::exchange(block->after, rest);
  if (rest->after) rest->after->before = rest;
  block->size = size;
  addFree(rest);
}

// [device.cache.keep] A freed block is merged with its free neighbors.
void Cache::freeBlock(Block* block) {
  if (block->requested) {
    tellOfMemory(MemoryEvent::Action::FREE_COMPLETED, block, block->requested);
  }
  decrease(stats_.active, block, 1);
  decrease(stats_.active_bytes, block, block->size);
  if (memoryIsGuarded() && block->pool == PoolId{0, 0}) {
    removeSegment(block);
    guarded_.push_back(block);
    return;
  }
  if (block->after && block->after->free) {
    removeFree(block->after);
    absorbNext(block);
  }
  if (block->before && block->before->free) {
    block = block->before;
    removeFree(block);
    absorbNext(block);
  }
  addFree(block);
}

void Cache::absorbNext(Block* block) {
  Block* next = block->after;
  block->size += next->size;
  block->after = next->after;
  if (block->after) block->after->before = block;
  delete next;
}

// [device.cache.add-free] Only whole segments can go back to the driver, so the bytes of partly used ones are counted.
void Cache::addFree(Block* block) {
  block->free = true;
  block->bins->add(block);
  if (!block->isPart()) return;
  increase(stats_.inactive_split, block, 1);
  increase(stats_.inactive_split_bytes, block, block->size);
}

void Cache::removeFree(Block* block) {
  block->free = false;
  block->bins->remove(block);
  if (!block->isPart()) return;
  decrease(stats_.inactive_split, block, 1);
  decrease(stats_.inactive_split_bytes, block, block->size);
}

// [device.cache.full.ask] By default there is no other holder of memory.
// `constinit`, because other files set it while the library is being loaded.
static constinit std::atomic<void (*)()> freeMemoryCallback = +[] {};

void onFullDevice(void (*give_back)()) { freeMemoryCallback = give_back; }

// [device.cache.from-device] When the device is full, free segments are given back, and the request is tried again unrounded.
Block* Cache::fromDevice(size_t bytes, size_t size, c10::Stream stream,
                         PoolId pool) {
  WithoutGil others_run;
  size_t wanted = segmentSize(size);
  void* data = nullptr;
  orError_t error = orMalloc(&data, wanted);
  // A graph that any thread captures, into a pool, is invalid if we wait.
  const bool retry = error == orErrorMemoryAllocation && !isCaptured(stream) &&
                     !isAnyPoolInUse();
  if (retry) {
    freeMemoryCallback.load()();
    waitForMarks();
    Lock lock(mutex_);
    ++stats_.num_alloc_retries;
    ++stats_.num_sync_all_streams;
    if (Block* block = reuse(size, stream, pool)) return block;
    lock.unlock();
    empty();
    wanted = memoryIsGuarded() ? bytes : multipleOf512(bytes);
    error = orMalloc(&data, wanted);
  }
  if (data) {
    tellOfMemory({MemoryEvent::Action::SEGMENT_ALLOC, stream.device_index(),
                  data, wanted, stream.id()});
  }
  Lock lock(mutex_);
  if (error == orErrorMemoryAllocation) {
    ++stats_.num_ooms;
    TORCH_CHECK_WITH(OutOfMemoryError, false, outOfMemory(bytes));
  }
  check(error);
  Block* block = addSegment(data, wanted, isSmall(size), stream, pool);
  split(block, size);
  return block;
}

// [device.cache.add-segment] A new segment is one block, in use.
Block* Cache::addSegment(void* data, size_t wanted, bool small,
                         c10::Stream stream, PoolId pool) {
  auto* block = new Block{static_cast<std::byte*>(data),
                          wanted,
                          stream,
                          small,
                          &pools_[pool].bins[{stream.id(), small}],
                          pool};
  segments_.emplace(data, block);
  ++stats_.num_device_alloc;
  increase(stats_.segment, block, 1);
  increase(stats_.reserved_bytes, block, wanted);
  return block;
}

// [device.cache.empty] `orFree` waits for the device, so it is called without our lock.
void Cache::empty() {
  WithoutGil others_run;
  const LeavesRefusals leaves;  // They are of other calls.
  // Guarded blocks go back when their streams get there.
  if (memoryIsGuarded()) check(orDeviceSynchronize());
  std::vector<Block*> unused;
  orError_t refusal = orSuccess;
  collect();
  {
    Lock lock(mutex_);
    for (auto& [key, bins] : pools_[{0, 0}].bins) {
      for (Block* block : bins.whole()) {
        removeFree(block);
        segments_.erase(block->data);
        unused.push_back(block);
      }
    }
  }
  for (Block* block : unused) {
    tellOfMemory(MemoryEvent::Action::SEGMENT_FREE, block, block->size);
    const orError_t error = orFree(block->data);
    if (error) {
      tellOfMemory(MemoryEvent::Action::SEGMENT_ALLOC, block, block->size);
    }
    Lock lock(mutex_);
    if (error != orSuccess) {
      // It is still the driver's and so ours; the others are freed first.
      refusal = error;
      segments_.emplace(block->data, block);
      addFree(block);
      continue;
    }
    ++stats_.num_device_free;
    decrease(stats_.segment, block, 1);
    decrease(stats_.reserved_bytes, block, block->size);
    delete block;
  }
  check(refusal);
}

// [device.cache.guarded] Under the lock a guarded block only leaves the cache; the driver gets it after that.
void Cache::removeSegment(Block* block) {
  segments_.erase(block->data);
  ++stats_.num_device_free;
  decrease(stats_.segment, block, 1);
  decrease(stats_.reserved_bytes, block, block->size);
}

void Cache::giveBackGuardedBlocks() {
  if (!memoryIsGuarded()) return;
  std::vector<Block*> blocks;
  {
    Lock lock(mutex_);
    blocks.swap(guarded_);
  }
  for (Block* block : blocks) {
    tellOfMemory(MemoryEvent::Action::SEGMENT_FREE, block, block->size);
    giveBackGuarded(block->data, nativeStream(block->stream));
    delete block;
  }
}

// [-]
}  // namespace openreg
