// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/memory/region.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace openreg::hardware {

// [common.region.free-list] A free block is always in both indexes.
Region::Region(uintptr_t begin, size_t size, Release release)
    : begin_(begin), size_(size), release_(std::move(release)) {
  addFree(begin, size);
}

void Region::addFree(uintptr_t begin, size_t size) {
  free_.emplace(begin, size);
  free_by_size_.emplace(size, begin);
  free_bytes_ += size;
}

void Region::removeFree(uintptr_t begin, size_t size) {
  free_.erase(begin);
  free_by_size_.erase({size, begin});
  free_bytes_ -= size;
}

size_t Region::freeBytes() const {
  std::shared_lock lock(mutex_);
  return free_bytes_;
}

// [common.region.allocate] The smallest block that fits is split, and its rest stays free.
uintptr_t Region::allocate(size_t size) {
  if (size > size_) return 0;
  const size_t reserved = (size + kAlignment - 1) / kAlignment * kAlignment;
  std::unique_lock lock(mutex_);
  auto fit = free_by_size_.lower_bound({reserved, 0});
  if (fit == free_by_size_.end()) return 0;
  const auto [free_size, begin] = *fit;
  removeFree(begin, free_size);
  if (free_size > reserved) addFree(begin + reserved, free_size - reserved);
  used_.emplace(begin, Used{size, reserved});
  return begin;
}

// [common.region.claim] Two threads may free one block at the same time, and only one of them gets it.
bool Region::claim(uintptr_t begin) {
  std::unique_lock lock(mutex_);
  auto block = used_.find(begin);
  if (block == used_.end()) return false;
  return !std::exchange(block->second.is_claimed, true);
}

void Region::unclaim(uintptr_t begin) {
  std::unique_lock lock(mutex_);
  used_.find(begin)->second.is_claimed = false;
}

// [common.region.free] Free neighbours merge, and whole free pages return to the system.
void Region::free(uintptr_t begin) {
  std::unique_lock lock(mutex_);
  auto block = used_.find(begin);
  const uintptr_t end = begin + block->second.reserved;
  used_.erase(block);

  uintptr_t free_begin = begin, free_end = end;
  auto after = free_.lower_bound(end);
  if (after != free_.begin()) {
    auto before = std::prev(after);
    if (before->first + before->second == begin) {
      free_begin = before->first;
      removeFree(before->first, before->second);
    }
  }
  after = free_.find(end);
  if (after != free_.end()) {
    free_end = end + after->second;
    removeFree(after->first, after->second);
  }
  addFree(free_begin, free_end - free_begin);

  // A page may hold two blocks: only pages without any other block go back.
  static const uintptr_t page = sysconf(_SC_PAGESIZE);
  const uintptr_t first =
      std::max(begin / page * page, (free_begin + page - 1) / page * page);
  const uintptr_t last =
      std::min((end + page - 1) / page * page, free_end / page * page);
  if (first < last) release_(first, last - first);
}

// [common.region.find] An address belongs to the last block that begins at or before it.
std::optional<Block> Region::find(uintptr_t address) const {
  std::shared_lock lock(mutex_);
  auto after = used_.upper_bound(address);
  if (after == used_.begin()) return std::nullopt;
  const auto& [begin, used] = *std::prev(after);
  if (used.is_claimed || address - begin >= used.size) return std::nullopt;
  return Block{begin, used.size};
}

// [-]
}  // namespace openreg::hardware
