// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/memory/block_table.h"

#include <mutex>
#include <utility>

namespace openreg::hardware {

// [common.block-table.find] Only the last block that begins at or before an address can contain it.
void BlockTable::add(const Block& block) {
  std::unique_lock lock(mutex_);
  entries_.emplace(block.begin, Entry{block});
}

std::optional<Block> BlockTable::find(uintptr_t address) const {
  std::shared_lock lock(mutex_);
  auto after = entries_.upper_bound(address);
  if (after == entries_.begin()) return std::nullopt;
  const Entry& entry = std::prev(after)->second;
  const bool contains = address - entry.block.begin < entry.block.size;
  if (entry.is_claimed || !contains) return std::nullopt;
  return entry.block;
}

// [common.block-table.claim] Two threads may free one block at the same time, and only one of them gets it.
bool BlockTable::claim(uintptr_t begin) {
  std::unique_lock lock(mutex_);
  auto found = entries_.find(begin);
  return found != entries_.end() &&
         !std::exchange(found->second.is_claimed, true);
}

void BlockTable::unclaim(uintptr_t begin) {
  std::unique_lock lock(mutex_);
  entries_.find(begin)->second.is_claimed = false;
}

Block BlockTable::remove(uintptr_t begin) {
  std::unique_lock lock(mutex_);
  return entries_.extract(begin).mapped().block;
}

// [-]
}  // namespace openreg::hardware
