// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/Stream.h>

#include <array>
#include <vector>

namespace openreg {

// [device.block] A piece of device memory: what it is part of, and who uses it.
class Bins;

struct Block {
  std::byte* data;
  size_t size;
  c10::Stream stream;
  /// Of the pool for small requests.
  bool small;
  /// Where it is kept while it is free: those of its stream and pool.
  Bins* bins;

  size_t requested = 0;
  bool free = false;
  /// How many marks in other streams it waits for, once it is freed.
  size_t marks = 0;
  std::vector<c10::Stream> other_streams{};

  /// Its neighbours in memory.
  Block* before = nullptr;
  Block* after = nullptr;
  /// Its neighbours in its bin.
  Block* previous = nullptr;
  Block* next = nullptr;

  /// Whether it is a part of what the driver gave, and not the whole of it.
  bool isPart() const { return before || after; }
};

// [device.size-class] A block of a class serves every request of that class.
/// Classes are multiples of 512 bytes up to 4 KiB, and from there on eight to
/// each power of two. @returns the smallest class that has room for `bytes`.
size_t sizeClass(size_t bytes);

// [device.bins] Free blocks by class, so that a fitting one is found by a glance.
/// Not thread-safe. A block of no class, the rest of one that was split, is in
/// the bin of the class below it.
class Bins {
 public:
  void add(Block* block);
  void remove(Block* block);
  /// A block of at least `size` bytes, which is a class, from the first bin
  /// that has one; of those the one that was added last. Null if there is none.
  Block* find(size_t size) const;
  /// All that are not parts.
  std::vector<Block*> whole() const;

 private:
  static constexpr size_t kWords = 7;
  std::array<Block*, kWords * 64> first_{};
  std::array<uint64_t, kWords> occupied_{};
};

// [-]
}  // namespace openreg
