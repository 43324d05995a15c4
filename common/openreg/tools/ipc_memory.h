// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "common/openreg/interface/openreg_tools.h"
#include "common/openreg/memory/region.h"

namespace openreg::hardware {

// [common.ipc] Blocks of other processes are mapped behind the memory of this one.
/// The content of a handle: the process, its file, and the place in the file.
struct IpcBlock {
  int process;
  int file;
  int device;
  uint64_t offset;
  uint64_t size;
};
static_assert(sizeof(IpcBlock) <= sizeof(orIpcMemHandle_t));

/// A range of addresses with the same window as the memory of this process, so
/// device code does not need to tell them apart.
class IpcMemory {
 public:
  IpcMemory(uintptr_t begin, size_t size, ptrdiff_t window);

  /// Maps the block and returns its address; 0 if its process has ended or
  /// there is no room.
  uintptr_t open(const IpcBlock& block);
  /// Unmaps the block; whether `open` had returned `pointer`.
  bool close(uintptr_t pointer);
  orPointerAttributes attributes(uintptr_t address) const;
  bool contains(uintptr_t address) const { return region_.contains(address); }

  // [common.ipc.state] A mapping consists of whole pages, and a block may not.
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
