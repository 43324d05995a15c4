// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/memory/cache.h"

#include <c10/util/StringUtil.h>

#include <limits>

namespace openreg {

// [device.cache.stats] PyTorch counts the current amount, the peak and the totals.
using c10::CachingAllocator::Stat;

template <class Apply>
static void forEachStat(Cache::Stats& stats, Apply apply) {
  for (auto* array :
       {&stats.allocation, &stats.segment, &stats.active, &stats.inactive_split,
        &stats.allocated_bytes, &stats.reserved_bytes, &stats.active_bytes,
        &stats.inactive_split_bytes, &stats.requested_bytes}) {
    for (Stat& stat : *array) apply(stat);
  }
}

Cache::Stats Cache::stats() {
  Lock lock(mutex_);
  stats_.max_split_size = std::numeric_limits<int64_t>::max();
  return stats_;
}

void Cache::resetPeakStats() {
  Lock lock(mutex_);
  forEachStat(stats_, [](Stat& stat) { stat.reset_peak(); });
}

void Cache::resetAccumulatedStats() {
  Lock lock(mutex_);
  forEachStat(stats_, [](Stat& stat) { stat.reset_accumulated(); });
  stats_.num_alloc_retries = stats_.num_ooms = stats_.num_sync_all_streams = 0;
  stats_.num_device_alloc = stats_.num_device_free = 0;
}

// [device.cache.snapshot] A snapshot walks along the neighbors in each segment.
std::vector<Cache::Segment> Cache::snapshot() {
  Lock lock(mutex_);
  std::vector<Segment> segments;
  for (auto [address, block] : segments_) {
    Segment& segment = segments.emplace_back();
    segment.device = block->stream.device_index();
    segment.address = reinterpret_cast<size_t>(block->data);
    segment.stream = reinterpret_cast<void*>(block->stream.id());
    segment.is_large = !block->small;
    segment.owner_private_pool_id = block->pool;
    for (; block; block = block->after) {
      const bool allocated = !block->free && block->marks == 0;
      segment.total_size += block->size;
      segment.allocated_size += allocated ? block->size : 0;
      segment.active_size += block->free ? 0 : block->size;
      segment.requested_size += allocated ? block->requested : 0;
      auto& info = segment.blocks.emplace_back();
      info.size = block->size;
      info.requested_size = block->requested;
      info.allocated = allocated;
      info.active = !block->free;
    }
  }
  return segments;
}

// [device.cache.out-of-memory] The message has the driver's numbers, the allocator's, and where to look next.
std::string Cache::outOfMemory(size_t wanted) const {
  const auto bytes = [](const StatArray& stats) { return stats[0].current; };
  return c10::str(
      orGetErrorDetail(), " The request was for ", wanted,
      " bytes. PyTorch holds ", bytes(stats_.allocated_bytes),
      " bytes in tensors, ",
      bytes(stats_.active_bytes) - bytes(stats_.allocated_bytes),
      " bytes that other streams still use, and ",
      bytes(stats_.reserved_bytes) - bytes(stats_.active_bytes),
      " bytes in free parts of larger pieces; torch.openreg.memory_snapshot() "
      "shows them.");
}

// [-]
}  // namespace openreg
