// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/execution/device.h"

#include "torch_openreg/common/openreg/core/machine.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace openreg::hardware {

// [common.device.synchronize] A host thread waits for the number of a command, which later commands cannot move.
bool Device::synchronize(CommandQueue& queue, uint64_t number,
                         bool calls_back) {
  return host_waiters.waitUntil([&] { return queue.completed() >= number; },
                                [&] { queue.wakeHostAt(number); }, calls_back);
}

void Device::runUntilNumber(CommandQueue& queue, uint64_t number) {
  host_waiters.waitUntil(
      [&] { return queue.completed() >= number || queue.waitsForNumber(); },
      [&] { queue.wakeHostAt(number); });
}

bool Device::synchronize(bool calls_back) {
  std::vector<std::pair<CommandQueue*, uint64_t>> targets;
  {
    std::lock_guard lock(mutex_);
    for (CommandQueue* queue : streams_) {
      targets.emplace_back(queue, queue->submitted());
    }
  }
  return std::all_of(targets.begin(), targets.end(), [&](const auto& target) {
    return synchronize(*target.first, target.second, calls_back);
  });
}

// [common.device.limit] Of two limits the later one holds, and removing the earlier one does nothing.
int64_t Device::limitWaiting() {
  const int64_t limit = steadyNanoseconds() + 1'000'000'000;
  waits_until_ = limit;
  return limit;
}

void Device::allowWaiting(int64_t limit) {
  waits_until_.compare_exchange_strong(limit, kNoLimit);
}

bool Device::givesUpWaiting() const {
  const int64_t limit = waits_until_;
  return limit != kNoLimit && steadyNanoseconds() >= limit;
}

// [common.device.create-stream] The default stream is created like any other.
orStream_t Device::createStream(int priority) {
  auto [handle, queue] = machine().streams.create("streams");
  try {
    CommandQueue::List entry(1, queue);
    queue->open(this, priority, handle);
    std::lock_guard lock(mutex_);
    queue->listed = entry.begin();
    streams_.splice(streams_.end(), entry);
  } catch (...) {
    machine().streams.recycle(handle);
    throw;
  }
  return handle;
}

orStream_t Device::defaultStream() {
  if (const orStream_t made = default_stream_) return made;
  std::lock_guard lock(default_mutex_);
  if (!default_stream_) default_stream_ = createStream(kLeastPriority);
  return default_stream_;
}

void Device::removeStream(CommandQueue* queue, orStream_t handle) {
  std::lock_guard lock(mutex_);
  of_destroyed_.keep(queue->refusal().take());
  streams_.erase(queue->listed);
  machine().streams.recycle(handle);
}

// [common.device.refusal] Waiting for a device is waiting for all of its streams, the destroyed ones included.
void Device::tellRefusal() {
  std::lock_guard lock(mutex_);
  of_destroyed_.tell();
  for (CommandQueue* queue : streams_) queue->refusal().tell();
}

void Device::reset() {
  const auto forget = [](PendingRefusal& pending) {
    if (auto refusal = pending.take()) refusal->is_told = true;
  };
  std::lock_guard lock(mutex_);
  forget(of_destroyed_);
  for (CommandQueue* queue : streams_) forget(queue->refusal());
  sticky_error.reset();
}

// [-]
}  // namespace openreg::hardware
