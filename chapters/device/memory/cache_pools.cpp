// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/memory/cache.h"

#include <c10/util/Exception.h>

#include <utility>

namespace openreg {

// [device.cache.pools.choose] While no pool is in use, a request pays for a look at an empty map.
Cache::PoolId Cache::poolFor(c10::Stream stream) {
  for (const auto& [id, claims] : claims_) {
    if (claims(stream)) return id;
  }
  return {0, 0};
}

// [device.cache.pools.use] A pool lives from its first use to the release of its last.
void Cache::beginPool(PoolId id, std::function<bool(c10::Stream)> claims) {
  Lock lock(mutex_);
  TORCH_CHECK_VALUE(!claims_.count(id), "Pool (", id.first, ", ", id.second,
                    ") is being allocated from already; end that first.");
  ++pools_[id].uses;
  claims_.emplace(id, std::move(claims));
  ++pools_in_use_;
}

void Cache::endPool(PoolId id) {
  {
    Lock lock(mutex_);
    if (claims_.erase(id)) --pools_in_use_;
  }
  retireCaptured();
}

void Cache::retireCaptured() {
  std::vector<Block*> captured;
  {
    Lock lock(mutex_);
    captured.swap(captured_);
  }
  // Some may wait for another capture, and are listed again.
  for (Block* block : captured) retire(block);
}

// [device.cache.pools.release] The free blocks of a pool are freed once more, so that they wait for the streams that used the pool.
void Cache::releasePool(PoolId id, const std::vector<c10::Stream>& streams) {
  std::vector<Block*> unused;
  {
    Lock lock(mutex_);
    const auto pool = pools_.find(id);
    if (pool == pools_.end()) return;
    std::vector<c10::Stream>& users = pool->second.streams;
    users.insert(users.end(), streams.begin(), streams.end());
    if (--pool->second.uses > 0) return;
    for (auto [address, block] : segments_) {
      if (block->pool != id) continue;
      for (; block; block = block->after) {
        if (block->free) {
          removeFree(block);
          increase(stats_.active, block, 1);
          increase(stats_.active_bytes, block, block->size);
          block->requested = 0;  // It was freed before, and told of then.
          unused.push_back(block);
        }
        block->pool = {0, 0};
        block->bins = &pools_[{0, 0}].bins[{block->stream.id(), block->small}];
        for (const c10::Stream& stream : users) {
          if (stream != block->stream) block->other_streams.push_back(stream);
        }
      }
    }
    pools_.erase(pool);
  }
  for (Block* block : unused) retire(block);
}

// [-]
}  // namespace openreg
