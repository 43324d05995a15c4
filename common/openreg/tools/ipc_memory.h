// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/common/openreg/memory/region.h"

#include <cstdint>

namespace openreg::hardware {

// [common.ipc] Blocks of other processes are mapped behind the memory of this one.
/// The content of a handle: the process, its file, and the place in the file.
/// A handle may have been damaged or invented, so nothing in it is trusted.
struct IpcBlock {
  static constexpr uint64_t kMagic = 0x31637069'6765726f;  // "oregipc1"

  uint64_t magic;
  int process;
  int file;
  int device;
  /// The number of the file in its file system: `file` may have been closed and
  /// opened again.
  uint64_t inode;
  uint64_t offset;
  uint64_t size;
};
static_assert(sizeof(IpcBlock) <= sizeof(orIpcMemHandle_t));

/// A range of addresses with the same window as the memory of this process, so
/// device code does not need to tell them apart.
class IpcMemory {
 public:
  IpcMemory(uintptr_t begin, size_t size, ptrdiff_t window);

  /// Maps the block and returns its address. If that fails, throws an error and
  /// changes nothing.
  uintptr_t open(const IpcBlock& block);
  /// The open blocks, which begin at the addresses that `open` returned.
  BlockTable& blocks() { return blocks_; }
  /// Unmaps a claimed block.
  void close(uintptr_t pointer);
  orPointerAttributes attributes(uintptr_t address) const;
  bool contains(uintptr_t address) const { return region_.contains(address); }

  // [common.ipc.state] A mapping consists of whole pages, and a block may not.
 private:
  /// Both return whether the system did it for both mappings of `pages`.
  bool map(Range pages, int file, uint64_t offset) const;
  bool unmap(Range pages) const;
  void release(Range pages);

  /// Hands out whole pages.
  Region region_;
  const ptrdiff_t window_;
  BlockTable blocks_;
};

// [-]
}  // namespace openreg::hardware
