// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Stream.h>

#include <array>
#include <vector>

namespace openreg {

// [device.block] A piece of device memory: its segment, its neighbors and its users.
class Bins;

/// The blocks of a segment form a list, in the order of their addresses.
struct Block {
  std::byte* data;     ///< device address
  size_t size;         ///< in bytes
  c10::Stream stream;  ///< whose later work may use it again
  /// Whether its segment is for small requests.
  bool small;
  /// The bins of its stream and pool, which hold it while it is free.
  Bins* bins;
  /// The pool that its segment is set aside for; {0, 0} if it is for everybody.
  c10::MempoolId_t pool{0, 0};

  size_t requested = 0;  ///< bytes; at most `size`
  bool free = false;     ///< whether no tensor holds it
  /// The number of marks in other streams that it waits for once it is freed.
  size_t marks = 0;
  std::vector<c10::Stream> other_streams{};  ///< recorded since the allocation

  /// Its neighbor in memory; null at an end of the segment.
  Block* before = nullptr;
  Block* after = nullptr;  ///< as `before`
  /// Its neighbor in its bin; null at an end of the list.
  Block* previous = nullptr;
  Block* next = nullptr;  ///< as `previous`

  /// Whether it is only a part of its segment.
  bool isPart() const { return before || after; }
};

// [device.size-class] A block of a class serves every request of that class.
/// Classes are multiples of 512 bytes up to 4 KiB, and from there on eight to
/// each power of two. @returns the smallest class that has room for `bytes`.
size_t sizeClass(size_t bytes);

// [device.bins] Free blocks by class, so that one bit operation finds a bin that fits.
/// Not thread-safe. The remainder of a split may have a size between two
/// classes; it is in the bin of the smaller one.
class Bins {
 public:
  /// The block must be free and in no bin.
  void add(Block* block);
  /// The block must be in one of these bins.
  void remove(Block* block);
  /// A block of at least `size` bytes, which must be the size of a class. Of
  /// the first bin that is not empty, the block that was added last; null if
  /// there is none.
  Block* find(size_t size) const;
  /// All blocks that are whole segments.
  std::vector<Block*> whole() const;

 private:
  static constexpr size_t kWords = 7;
  std::array<Block*, kWords * 64> first_{};
  std::array<uint64_t, kWords> occupied_{};
};

// [-]
}  // namespace openreg
