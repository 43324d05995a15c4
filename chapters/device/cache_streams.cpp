// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/device/cache.h"
#include "chapters/device/poison.h"

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

// [device.cache.mark] Freeing a block never waits: it leaves marks, and looks again later.
static std::vector<orEvent_t> markStreams(const Block* block) {
  std::vector<orEvent_t> events;
  for (const c10::Stream& stream : block->other_streams) {
    orEvent_t event = nullptr;
    orEventCreateWithFlags(&event, orEventDisableTiming);
    // Called from destructors. A stream that refuses has failed, and runs
    // nothing more; an event never recorded makes nobody wait.
    orEventRecord(event, nativeStream(stream));
    events.push_back(event);
  }
  return events;
}

// [device.cache.free] Back into the cache, at once or when the other streams are done.
void Cache::free(Block* block) {
  // Not under our lock: if a queue is full, the host waits for its device.
  const std::vector<orEvent_t> events = markStreams(block);
  if (poisonsFreedMemory()) poison(block, events);

  Lock lock(mutex_);
  decrease(stats_.allocation, block, 1);
  decrease(stats_.allocated_bytes, block, block->size);
  decrease(stats_.requested_bytes, block, block->requested);
  block->marks = events.size();
  for (size_t i = 0; i < events.size(); ++i) {
    marks_[block->other_streams[i].id()].push_back({events[i], block});
  }
  block->other_streams.clear();
  if (events.empty()) keep(block);
}

// [device.cache.collect] Of each stream's marks, the first that has not happened ends the search.
void Cache::collect(Lock& lock) {
  auto marks = std::exchange(marks_, {});
  // To ask an event is to let work go on, and a kernel may free memory: not
  // under our lock either.
  lock.unlock();
  std::vector<Block*> passed;
  for (auto& [stream, waiting] : marks) {
    while (!waiting.empty() &&
           orEventQuery(waiting.front().event) != orErrorNotReady) {
      orEventDestroy(waiting.front().event);
      passed.push_back(waiting.front().block);
      waiting.pop_front();
    }
  }
  lock.lock();
  for (Block* block : passed) {
    if (--block->marks == 0) keep(block);
  }
  for (auto& [stream, waiting] : marks) {
    if (waiting.empty()) continue;
    auto& newer = marks_[stream];
    newer.insert(newer.begin(), waiting.begin(), waiting.end());
  }
}

// [-]
}  // namespace openreg
