// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "foreign.h"
#include "openreg.h"
#include "region.h"

#include <memory>
#include <vector>

namespace openreg::hardware {

// [common.memory] All memory there is: each device's, and pinned memory of the host.
/// Device memory is one memory file mapped twice. The front has no access
/// rights: its addresses are what `orMalloc` returns, and following one on the
/// host faults. The back is readable and writable, `window()` bytes further:
/// device code goes there.
class Memory {
 public:
  explicit Memory(int device_count, size_t device_memory);

  Region& device(int index) { return *devices_[index]; }
  Region& pinned() { return *pinned_; }
  ForeignMemory& foreign() { return *foreign_; }
  /// What another process needs to open the block at `pointer`, of `size`
  /// bytes, on device `device`.
  ForeignBlock handle(uintptr_t pointer, size_t size, int device) const;
  ptrdiff_t window() const { return window_; }

  /// Tells AddressSanitizer, if this is built with it, that no kernel may touch
  /// a block any more, or that it may again.
  void poison(uintptr_t address, size_t size) const;
  void unpoison(uintptr_t address, size_t size) const;

  /// Where `pointer` points; type orMemoryTypeUnmanaged if it is not ours.
  orPointerAttributes attributes(const void* pointer) const;

 private:
  void divide(int device_count, size_t device_memory);

  std::vector<std::unique_ptr<Region>> devices_;
  std::unique_ptr<Region> pinned_;
  std::unique_ptr<ForeignMemory> foreign_;
  uintptr_t base_ = 0;
  int file_ = -1;
  ptrdiff_t window_ = 0;
};

// [-]
}  // namespace openreg::hardware
