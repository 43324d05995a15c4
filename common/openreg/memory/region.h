// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <shared_mutex>

namespace openreg::hardware {

// [common.region] A region hands out blocks of an address range, and never touches the memory itself.
struct Block {
  uintptr_t begin = 0;
  size_t size = 0;
};

/// A best-fit allocator of one address range, with blocks aligned to
/// `kAlignment` bytes. Thread-safe. It does not touch the memory: `release` is
/// called for whole pages that no block uses any more.
class Region {
 public:
  static constexpr size_t kAlignment = 512;
  using Release = std::function<void(uintptr_t begin, size_t size)>;

  Region(uintptr_t begin, size_t size, Release release);

  /// The new block's address, or 0 if no free block is large enough.
  uintptr_t allocate(size_t size);
  /// Begins to free a block, which is no longer found; false if no block in use
  /// begins at `begin`.
  bool claim(uintptr_t begin);
  /// Undoes `claim`.
  void unclaim(uintptr_t begin);
  /// Gives back a block that is in use or claimed.
  void free(uintptr_t begin);
  /// The block in use that contains `address`; found in logarithmic time.
  std::optional<Block> find(uintptr_t address) const;

  bool contains(uintptr_t address) const { return address - begin_ < size_; }
  size_t size() const { return size_; }
  /// Bytes in free blocks.
  size_t freeBytes() const;

  // [common.region.state] Free blocks are indexed by address and by size.
 private:
  struct Used {
    size_t size;
    size_t reserved;
    bool is_claimed = false;
  };

  void addFree(uintptr_t begin, size_t size);
  void removeFree(uintptr_t begin, size_t size);

  const uintptr_t begin_;
  const size_t size_;
  const Release release_;
  mutable std::shared_mutex mutex_;
  std::map<uintptr_t, Used> used_;
  std::map<uintptr_t, size_t> free_;
  std::set<std::pair<size_t, uintptr_t>> free_by_size_;
  size_t free_bytes_ = 0;
};

// [-]
}  // namespace openreg::hardware
