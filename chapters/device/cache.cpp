// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/device/cache.h"
#include "common/error.h"

#include <algorithm>
#include <bit>

namespace openreg {

// [device.cache.size-class] From 2 KiB on, at most a fifth of a block is wasted.
size_t sizeClass(size_t bytes) {
  const size_t step = std::max<size_t>(512, std::bit_floor(bytes - 1) / 4);
  return (bytes + step - 1) / step * step;
}

// [device.cache.events] Freeing a block never waits: it leaves marks, and looks again later.
Waiting::Waiting(Block* freed) : block_(freed) {
  for (const c10::Stream& stream : block_->other_streams) {
    orEvent_t event;
    if (orEventCreateWithFlags(&event, orEventDisableTiming)) continue;
    events_.push_back(event);
    // Called from destructors. A stream that refuses has failed, and runs
    // nothing more.
    orEventRecord(event, nativeStream(stream));
  }
  block_->other_streams.clear();
}

bool Waiting::over() {
  while (!events_.empty() && orEventQuery(events_.back()) != orErrorNotReady) {
    orEventDestroy(events_.back());
    events_.pop_back();
  }
  return events_.empty();
}

// [device.cache.stats] PyTorch counts how much, how often and how much at most.
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;

void increase(StatArray& stats, size_t amount) { stats[0].increase(amount); }
void decrease(StatArray& stats, size_t amount) { stats[0].decrease(amount); }

template <class Apply>
void forEachStat(Cache::Stats& stats, Apply apply) {
  for (StatArray* array :
       {&stats.allocation, &stats.segment, &stats.active, &stats.inactive_split,
        &stats.allocated_bytes, &stats.reserved_bytes, &stats.active_bytes,
        &stats.inactive_split_bytes, &stats.requested_bytes}) {
    for (Stat& stat : *array) apply(stat);
  }
}

}  // namespace

// [device.cache.allocate] From the cache if it can, from the device if it must.
Block* Cache::allocate(size_t bytes, c10::Stream stream) {
  const size_t size = sizeClass(bytes);
  Block* block = reuse(size, stream);
  if (!block) block = fromDevice(size, stream);
  block->requested = bytes;
  std::lock_guard lock(mutex_);
  increase(stats_.allocation, 1);
  increase(stats_.allocated_bytes, size);
  increase(stats_.requested_bytes, bytes);
  increase(stats_.active, 1);
  increase(stats_.active_bytes, size);
  return block;
}

// [device.cache.reuse] The block that was freed last is the one whose bytes are near.
Block* Cache::reuse(size_t size, c10::Stream stream) {
  std::lock_guard lock(mutex_);
  if (!waiting_.empty()) collect();
  auto kept = kept_.find({stream.id(), size});
  if (kept == kept_.end() || kept->second.empty()) return nullptr;
  Block* block = kept->second.back();
  kept->second.pop_back();
  return block;
}

// [device.cache.from-device] A full device is emptied of what nobody uses, and asked again.
Block* Cache::fromDevice(size_t size, c10::Stream stream) {
  void* data = nullptr;
  orError_t error = orMalloc(&data, size);
  const bool retried = error == orErrorMemoryAllocation;
  if (retried) {
    check(orDeviceSynchronize());
    empty();
    error = orMalloc(&data, size);
  }
  std::lock_guard lock(mutex_);
  stats_.num_alloc_retries += retried;
  stats_.num_ooms += error == orErrorMemoryAllocation;
  TORCH_CHECK_WITH(OutOfMemoryError, error != orErrorMemoryAllocation,
                   orGetErrorDetail(), " PyTorch holds ",
                   stats_.allocated_bytes[0].current, " bytes in tensors.");
  check(error);
  ++stats_.num_device_alloc;
  increase(stats_.segment, 1);
  increase(stats_.reserved_bytes, size);
  return new Block{data, size, 0, stream, {}};
}

// [device.cache.free] Back into the cache, at once or when the other streams are done.
void Cache::free(Block* block) {
  std::lock_guard lock(mutex_);
  decrease(stats_.allocation, 1);
  decrease(stats_.allocated_bytes, block->size);
  decrease(stats_.requested_bytes, block->requested);
  if (block->other_streams.empty()) return keep(block);
  waiting_.emplace_back(block);
}

void Cache::keep(Block* block) {
  decrease(stats_.active, 1);
  decrease(stats_.active_bytes, block->size);
  kept_[{block->stream.id(), block->size}].push_back(block);
}

void Cache::collect() {
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    if (!waiting->over()) {
      ++waiting;
      continue;
    }
    keep(waiting->block());
    waiting = waiting_.erase(waiting);
  }
}

// [device.cache.record-stream] The stream that allocated a block needs no record.
void Cache::recordStream(Block* block, c10::Stream stream) {
  std::lock_guard lock(mutex_);
  auto& others = block->other_streams;
  if (stream != block->stream &&
      std::find(others.begin(), others.end(), stream) == others.end()) {
    others.push_back(stream);
  }
}

// [device.cache.empty] The driver waits for the device before it frees: not under our lock.
void Cache::empty() {
  Kept unused;
  {
    std::lock_guard lock(mutex_);
    collect();
    unused.swap(kept_);
  }
  for (auto& [key, blocks] : unused) {
    for (Block* block : blocks) {
      check(orFree(block->data));
      std::lock_guard lock(mutex_);
      ++stats_.num_device_free;
      decrease(stats_.segment, 1);
      decrease(stats_.reserved_bytes, block->size);
      delete block;
    }
  }
}

// [device.cache.report] Statistics are copied under the lock.
Cache::Stats Cache::stats() {
  std::lock_guard lock(mutex_);
  return stats_;
}

void Cache::resetPeakStats() {
  std::lock_guard lock(mutex_);
  forEachStat(stats_, [](Stat& stat) { stat.reset_peak(); });
}

void Cache::resetAccumulatedStats() {
  std::lock_guard lock(mutex_);
  forEachStat(stats_, [](Stat& stat) { stat.reset_accumulated(); });
  stats_.num_alloc_retries = stats_.num_ooms = 0;
}

// [-]
}  // namespace openreg
