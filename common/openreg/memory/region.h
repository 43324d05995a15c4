// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/memory/block_table.h"
#include "torch_openreg/common/openreg/memory/pages.h"

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace openreg::hardware {

// [common.region.layout] A block lies at the end of the addresses that are taken for it.
struct BlockLayout {
  size_t alignment = 512;  ///< of each block
  size_t unit = 512;       ///< the addresses are a multiple of this many,
  size_t margin = 0;       ///< and so many more on both sides
};

// [common.region.layout.guarded] A guarded block ends where its last page ends, so that most writes past it fault at once.
/// How blocks lie in the memory of a device. Any type can be stored at a
/// multiple of 16, and between 0 and 15 bytes of padding follow a guarded
/// block.
inline BlockLayout layoutOfBlocks(bool guarded) {
  if (!guarded) return {};
  return {alignof(std::max_align_t), pageSize(), pageSize()};
}

// [common.region] A region hands out blocks of an address range, and never touches the memory itself.
/// A best-fit allocator of one address range. Thread-safe. It does not touch
/// the memory: `release` is called for whole pages that no block uses any more.
class Region {
 public:
  static constexpr size_t kAlignment = BlockLayout{}.alignment;
  using Release = std::function<void(uintptr_t begin, size_t size)>;

  Region(uintptr_t begin, size_t size, Release release,
         BlockLayout layout = {});

  /// The new block's address, or 0 if no free block is large enough.
  uintptr_t allocate(size_t size);
  /// Gives back the block at `block`, which is in use or claimed.
  void free(uintptr_t block);
  /// The blocks in use.
  BlockTable& blocks() { return blocks_; }
  const BlockTable& blocks() const { return blocks_; }

  bool contains(uintptr_t address) const { return address - begin_ < size_; }
  size_t size() const { return size_; }
  /// Bytes in free blocks.
  size_t freeBytes() const;
  /// How many addresses a block of `size` bytes takes, and how many of them are
  /// before it.
  size_t reservedFor(size_t size) const;
  size_t offsetOf(size_t size) const;

  // [common.region.state] Free blocks are indexed by address and by size, and there are enough nodes of both indexes for all blocks to become free.
 private:
  using ByPlace = std::map<uintptr_t, size_t>;
  using BySize = std::set<std::pair<size_t, uintptr_t>>;
  struct Nodes {
    ByPlace::node_type by_place;
    BySize::node_type by_size;
  };
  void addSpare();
  void addFree(uintptr_t begin, size_t size);
  void removeFree(uintptr_t begin, size_t size);

  const uintptr_t begin_;
  const size_t size_;
  const Release release_;
  const BlockLayout layout_;
  BlockTable blocks_;
  mutable std::mutex mutex_;
  ByPlace free_;
  BySize free_by_size_;
  std::vector<Nodes> spare_;
  size_t free_bytes_ = 0, used_blocks_ = 0;
};

// [-]
}  // namespace openreg::hardware
