// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>

namespace openreg::hardware {

// [common.block-table] Blocks in use are found by any address inside them, until a thread claims them.
struct Block {
  uintptr_t begin = 0;
  size_t size = 0;
  /// The device of another process on which the block is.
  int device = -1;
};

/// The blocks in use of one range of addresses. Thread-safe.
class BlockTable {
 public:
  void add(const Block& block);
  /// The block that contains `address` and is not claimed; found in logarithmic
  /// time.
  std::optional<Block> find(uintptr_t address) const;
  /// Begins to free a block, which is no longer found; false if no block begins
  /// at `begin`, or if it is claimed.
  bool claim(uintptr_t begin);
  /// Undoes `claim`.
  void unclaim(uintptr_t begin);
  /// Removes the block that begins at `begin`, and returns it.
  Block remove(uintptr_t begin);

 private:
  struct Entry {
    Block block;
    bool is_claimed = false;
  };

  mutable std::shared_mutex mutex_;
  std::map<uintptr_t, Entry> entries_;
};

// [-]
}  // namespace openreg::hardware
