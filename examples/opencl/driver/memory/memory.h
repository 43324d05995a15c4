// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"
#include "torch_openreg/common/openreg/memory/block_table.h"
#include "torch_openreg/common/openreg/memory/mapping.h"
#include "torch_openreg/common/openreg/memory/region.h"
#include "torch_openreg/examples/opencl/driver/core/owned.h"

#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

namespace openreg::hardware {

// [opencl.memory] The driver makes its own device addresses; OpenCL knows only the buffers behind them.
/// A place in device memory, as OpenCL names it.
struct Place {
  MemoryRef buffer;
  size_t offset = 0;
};

/// The addresses of each device are a range without access rights, so a host
/// that follows one faults. Each block in it has a buffer of its own.
class Memory {
 public:
  /// `sizes` are those of the devices. `device` maps the pinned memory.
  Memory(cl_context context, cl_device_id device, std::vector<size_t> sizes);

  /// The address of a new block; null, with the last error set, if that fails.
  void* allocate(int device, size_t size, size_t largest);
  void* allocatePinned(size_t size);

  /// Begins to free a block, which is no longer found, or undoes that. If
  /// several threads claim a block, one of them gets true.
  bool claim(const orPointerAttributes& block);
  void free(const orPointerAttributes& block);

  // [opencl.memory.look-up] A look-up returns the block of an address, or its buffer and offset.
  /// The block that contains `pointer`; of type orMemoryTypeUnmanaged if none
  /// does.
  orPointerAttributes attributes(const void* pointer) const;
  /// Whether `pointer` is an address that `allocate` could return.
  bool contains(const void* pointer) const;
  /// Where `pointer` is for OpenCL; without a buffer if it is in no block.
  Place place(const void* pointer) const;
  const Region& device(int index) const { return *regions_[index]; }

 private:
  cl_context context_;
  QueueRef mapping_queue_;
  std::vector<Reservation> ranges_;
  std::vector<std::unique_ptr<Region>> regions_;
  mutable std::shared_mutex mutex_;
  /// Those of pinned blocks too, by the beginnings of the blocks.
  std::map<uintptr_t, MemoryRef> buffers_;
  BlockTable pinned_;
};

// [-]
}  // namespace openreg::hardware
