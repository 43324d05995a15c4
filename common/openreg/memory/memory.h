// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"
#include "torch_openreg/common/openreg/memory/mapping.h"
#include "torch_openreg/common/openreg/memory/region.h"
#include "torch_openreg/common/openreg/tools/ipc_memory.h"

#include <memory>
#include <vector>

namespace openreg::hardware {

// [common.memory] One object owns the memory of all devices and the pinned memory of the host.
/// Device memory is one memory file, mapped twice. The front mapping has no
/// access rights: its addresses are what `orMalloc` returns, and the host
/// faults when it follows one. The back mapping is readable and writable,
/// `window()` bytes further, and is used by device code.
class Memory {
 public:
  /// `reserve` bytes of addresses are for pinned memory, and as many for blocks
  /// of other processes; fewer where addresses are limited. Memory that is
  /// `guarded` is closed to device code, too, until `Guards` opens a block.
  /// @throws std::runtime_error if not even the devices' memory fits.
  Memory(int device_count, size_t device_memory, size_t reserve, bool guarded);

  Region& device(int index) { return *devices_[index]; }
  Region& pinned() { return *pinned_; }
  /// The address of a new pinned block; 0 if there is no room for it.
  uintptr_t allocatePinned(size_t size);
  IpcMemory& ipc() { return *ipc_; }
  /// What another process needs to open the block of `size` bytes at `pointer`
  /// on device `device`.
  IpcBlock ipcBlock(uintptr_t pointer, size_t size, int device) const;
  ptrdiff_t window() const { return window_; }
  /// The addresses of all devices.
  uintptr_t begin() const { return base_; }
  size_t size() const { return devices_.size() * devices_[0]->size(); }
  /// Gives pages of the devices back to the system.
  void releasePages(uintptr_t begin, size_t bytes) const;

  // [common.memory.blocks] Queries about addresses, and what AddressSanitizer is told about them.
  /// Tells AddressSanitizer, if the driver is built with it, that kernels must
  /// not touch a block any more, or that they may again.
  void poison(uintptr_t address, size_t size) const;
  void unpoison(uintptr_t address, size_t size) const;

  /// The block that contains `pointer`; of type orMemoryTypeUnmanaged if none
  /// of the driver does.
  orPointerAttributes attributes(const void* pointer) const;
  /// Whether `pointer` is in the range of the devices or of pinned memory,
  /// where only live blocks may be touched.
  bool contains(const void* pointer) const;

 private:
  bool reserve(size_t size, size_t reserve);
  void createRegions(int device_count, size_t device_memory, bool guarded);

  std::vector<std::unique_ptr<Region>> devices_;
  std::unique_ptr<Region> pinned_;
  std::unique_ptr<IpcMemory> ipc_;
  MemoryFile file_;
  Reservation front_, back_, pinned_range_;
  size_t reserve_ = 0;
  uintptr_t base_ = 0;
  ptrdiff_t window_ = 0;
};

// [-]
}  // namespace openreg::hardware
