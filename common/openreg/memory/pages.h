// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace openreg::hardware {

// [common.pages] The system maps whole pages, gives rights to them and takes them back.
/// The bytes [begin, end).
struct Range {
  uintptr_t begin = 0, end = 0;

  size_t size() const { return end - begin; }
  bool contains(uintptr_t address) const { return address - begin < size(); }
};

inline uintptr_t pageSize() {
  static const uintptr_t page = sysconf(_SC_PAGESIZE);
  return page;
}

/// The pages on which the bytes are.
inline Range pagesOf(Range bytes) {
  const uintptr_t within = pageSize() - 1;
  return {bytes.begin & ~within, (bytes.end + within) & ~within};
}

// [-]
}  // namespace openreg::hardware
