// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "openreg_tools.h"
#include "region.h"

#include <memory>

namespace openreg::hardware {

// [common.foreign] Blocks of other processes, mapped beside our own memory.
/// What is in a handle: which file of which process, and where in it.
struct ForeignBlock {
  int process;
  int file;
  int device;
  uint64_t offset;
  uint64_t size;
};
static_assert(sizeof(ForeignBlock) <= sizeof(orIpcMemHandle_t));

/// A range of addresses as far from its window as our own memory, so that
/// device code need not know the difference.
class ForeignMemory {
 public:
  ForeignMemory(uintptr_t begin, size_t size, ptrdiff_t window);

  /// The block's address here; 0 if its process is gone or there is no room.
  uintptr_t open(const ForeignBlock& block);
  /// Whether `pointer` was what `open` returned.
  bool close(uintptr_t pointer);
  orPointerAttributes attributes(uintptr_t address) const;
  bool contains(uintptr_t address) const { return region_.contains(address); }

  // [common.foreign.state] Mappings are made of whole pages; blocks need not be.
 private:
  struct Mapping {
    uintptr_t begin;
    size_t mapped;
    size_t size;
    int device;
  };

  void map(const Mapping& mapping, int file, uint64_t offset) const;
  void unmap(const Mapping& mapping) const;

  Region region_;
  const ptrdiff_t window_;
  mutable std::shared_mutex mutex_;
  std::map<uintptr_t, Mapping> opened_;
};

// [-]
}  // namespace openreg::hardware
