// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg_tools.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace openreg::hardware {

// [common.races.footprint] The bytes of a tensor are runs of equal length at regular distances.
/// The bytes [begin, end), or, of these, runs of `run` bytes that repeat in up
/// to four dimensions.
struct Footprint {
  struct Repeat {
    uint64_t stride = 0, count = 0;
    bool operator==(const Repeat&) const = default;
  };
  static constexpr size_t kMostDims = 4;

  /// A tensor of more dimensions that cannot be merged is taken as a whole.
  explicit Footprint(const orAccess& access);

  bool isEmpty() const { return begin == end; }
  /// Whether it has all bytes from `begin` to `end`.
  bool isDense() const { return dims == 0; }
  bool operator==(const Footprint&) const = default;

  uintptr_t begin = 0, end = 0;
  uint64_t run = 0;
  size_t dims = 0;
  std::array<Repeat, kMostDims> repeats{};
};

/// Whether both have a byte. Of footprints that repeat at the same distance,
/// such as columns of one matrix, the answer is exact; of others it may be a
/// yes for parts that only interlock.
bool overlap(const Footprint& one, const Footprint& other);

// [-]
}  // namespace openreg::hardware
