// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/memory/cache.h"
#include "torch_openreg/chapters/device/memory/memory_events.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/guarded.h"
#include "torch_openreg/common/waiting.h"

#include <algorithm>
#include <utility>

namespace openreg {

// [device.cache.record-stream] The stream that allocated a block needs no record.
void Cache::recordStream(Block* block, c10::Stream stream) {
  Lock lock(mutex_);
  auto& others = block->other_streams;
  if (stream != block->stream &&
      std::find(others.begin(), others.end(), stream) == others.end()) {
    others.push_back(stream);
  }
}

std::vector<c10::Stream> Cache::takeRecordedStreams(Block* block) {
  Lock lock(mutex_);
  return std::exchange(block->other_streams, {});
}

// [device.cache.find] A slice of a storage has only an address, so the block is searched for.
Block* Cache::find(const void* data) {
  Lock lock(mutex_);
  auto after = segments_.upper_bound(data);
  if (after == segments_.begin()) return nullptr;
  Block* block = std::prev(after)->second;
  while (block && data >= block->data + block->size) block = block->after;
  return block;
}

// [device.cache.mark] Freeing a block does not wait: it records events, which are queried later.
using StreamAndEvent = std::pair<orStream_t, orEvent_t>;

static std::vector<StreamAndEvent> markStreams(
    const Block* block, const std::vector<c10::Stream>& streams) {
  std::vector<StreamAndEvent> marks;
  for (const c10::Stream& stream : streams) {
    marks.emplace_back(nativeStream(stream), eventIn(stream));
    announceSettled(block->data, block->size, marks.back().first);
  }
  return marks;
}

// [device.cache.free] What a program frees is counted at once.
void Cache::free(Block* block) {
  tellOfMemory(MemoryEvent::Action::FREE_REQUESTED, block, block->requested);
  {
    Lock lock(mutex_);
    decrease(stats_.allocation, block, 1);
    decrease(stats_.allocated_bytes, block, block->size);
    decrease(stats_.requested_bytes, block, block->requested);
    if (block->other_streams.empty() && !memoryIsGuarded())
      return freeBlock(block);
  }
  retire(block);
}

// [device.cache.retire] A block returns to the cache at once, or when the other streams are done with it.
void Cache::retire(Block* block) {
  // At any time, `releasePool` may add streams to a block and change its pool.
  const std::vector<c10::Stream> others = takeRecordedStreams(block);
  const bool is_common = [&] {
    Lock lock(mutex_);
    return block->pool == PoolId{0, 0};
  }();
  if (std::any_of(others.begin(), others.end(), &isCaptured) ||
      (memoryIsGuarded() && is_common && isCaptured(block->stream))) {
    // The streams run nothing that an event could wait for; `endPool` goes on.
    Lock lock(mutex_);
    block->other_streams.insert(block->other_streams.end(), others.begin(),
                                others.end());
    block->marks = 1;
    captured_.push_back(block);
    return;
  }
  // Outside our lock, because recording waits for the device if a queue is
  // full.
  const std::vector<StreamAndEvent> marks = markStreams(block, others);
  bool is_used_again = false;
  {
    Lock lock(mutex_);
    block->marks = marks.size();
    for (auto [stream, event] : marks) marks_[stream].push_back({event, block});
    is_used_again = marks.empty() && !block->other_streams.empty();
    if (marks.empty() && !is_used_again) freeBlock(block);
  }
  if (is_used_again) return retire(block);
  giveBackGuardedBlocks();
}

// [device.cache.collect] The marks of a stream complete in order, so the search stops at the first incomplete one.
void Cache::collect() {
  // `releasePool` may have added streams to a block that waited already.
  for (Block* block : collectPassed()) retire(block);
  giveBackGuardedBlocks();
}

std::vector<Block*> Cache::collectPassed() {
  WithoutGil others_run;
  std::lock_guard turn(collecting_);
  Lock lock(mutex_);
  auto marks = std::exchange(marks_, {});
  // Querying an event may run device work, and a kernel may free memory.
  lock.unlock();
  std::vector<Block*> passed;
  const AsksForItself asks;
  for (auto& [stream, waiting] : marks) {
    while (!waiting.empty() && isReached(waiting.front().event)) {
      passed.push_back(waiting.front().block);
      waiting.pop_front();
    }
  }
  lock.lock();
  std::vector<Block*> used_again;
  for (Block* block : passed) {
    if (--block->marks > 0) continue;
    if (block->other_streams.empty()) {
      freeBlock(block);
    } else {
      used_again.push_back(block);
    }
  }
  for (auto& [stream, waiting] : marks) {
    if (waiting.empty()) continue;
    auto& newer = marks_[stream];
    waiting.insert(waiting.end(), newer.begin(), newer.end());
    newer.swap(waiting);
  }
  return used_again;
}

// [device.cache.wait-for-marks] Waiting for other streams pays off only when the device is full.
void Cache::waitForMarks() {
  std::vector<orEvent_t> events;
  {
    std::lock_guard turn(collecting_);
    Lock lock(mutex_);
    for (const auto& [stream, waiting] : marks_) {
      for (const Mark& mark : waiting) events.push_back(mark.event);
    }
  }
  const AsksForItself asks;
  const LeavesRefusals leaves;
  // The driver does not know an event that was collected meanwhile, and it
  // repeats a failure of the device.
  for (orEvent_t event : events) orEventSynchronize(event);
  collect();
}

// [-]
}  // namespace openreg
