// SPDX-License-Identifier: BSD-3-Clause
#pragma once

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
  ptrdiff_t window() const { return window_; }

  /// Where `pointer` points; type orMemoryTypeUnmanaged if it is not ours.
  orPointerAttributes attributes(const void* pointer) const;

 private:
  std::vector<std::unique_ptr<Region>> devices_;
  std::unique_ptr<Region> pinned_;
  ptrdiff_t window_ = 0;
};

// [-]
}  // namespace openreg::hardware
