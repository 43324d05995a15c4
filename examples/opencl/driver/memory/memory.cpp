// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/opencl/driver/memory/memory.h"

#include "torch_openreg/examples/opencl/driver/core/cl_error.h"

#include <utility>

namespace openreg::hardware {

// [opencl.memory.ranges] Reserving addresses costs no memory, so each device reserves one address for each of its bytes.
Memory::Memory(cl_context context, cl_device_id device,
               std::vector<size_t> sizes)
    : context_(context) {
  cl_int code;
  mapping_queue_ = adopt(clCreateCommandQueue(context, device, 0, &code));
  requireCl(code, "clCreateCommandQueue");
  for (size_t size : sizes) {
    Reservation& range = ranges_.emplace_back(reserveAddresses(size));
    if (!range) {
      throw std::runtime_error(
          "the system gives no addresses for " + std::to_string(size) +
          " bytes; make OPENREG_DEVICE_MEMORY smaller, or `ulimit -v` larger");
    }
    regions_.push_back(
        std::make_unique<Region>(reinterpret_cast<uintptr_t>(range.get()), size,
                                 [](uintptr_t, size_t) {}));
  }
}

// [opencl.memory.allocate] OpenCL does not say how much memory is free, so each device's region counts it.
void* Memory::allocate(int device, size_t size, size_t largest) {
  Region& region = *regions_[device];
  if (size > largest && size <= region.size()) {
    fail(orErrorMemoryAllocation, "openreg:", device, " has no block of ", size,
         " bytes; the OpenCL runtime allows at most ", largest, " in one.");
    return nullptr;
  }
  const uintptr_t address = region.allocate(size);
  if (!address) {
    fail(orErrorMemoryAllocation, "openreg:", device, " has ",
         region.freeBytes(), " of ", region.size(),
         " bytes free, and no free block of ", size, " bytes.");
    return nullptr;
  }
  cl_int code;
  const cl_mem buffer =
      clCreateBuffer(context_, CL_MEM_READ_WRITE, size, nullptr, &code);
  if (checkCl(code, "clCreateBuffer")) {
    region.free(address);
    return nullptr;
  }
  std::unique_lock lock(mutex_);
  buffers_.emplace(address, adopt(buffer));
  return reinterpret_cast<void*>(address);
}

// [opencl.memory.pinned] Pinned memory is a buffer in host memory that stays mapped; the runtime chooses its address.
void* Memory::allocatePinned(size_t size) {
  cl_int code;
  const cl_mem created =
      clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size,
                     nullptr, &code);
  if (checkCl(code, "clCreateBuffer")) return nullptr;
  MemoryRef buffer = adopt(created);
  void* address = clEnqueueMapBuffer(mapping_queue_.get(), created, CL_TRUE,
                                     CL_MAP_READ | CL_MAP_WRITE, 0, size, 0,
                                     nullptr, nullptr, &code);
  if (checkCl(code, "clEnqueueMapBuffer")) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(address);
  std::unique_lock lock(mutex_);
  buffers_.emplace(begin, std::move(buffer));
  pinned_.add({begin, size});
  return address;
}

// [opencl.memory.free] A block is first claimed; its buffer is released when all work has ended.
bool Memory::claim(const orPointerAttributes& block) {
  const auto address = reinterpret_cast<uintptr_t>(block.pointer);
  return block.device < 0 ? pinned_.claim(address)
                          : regions_[block.device]->blocks().claim(address);
}

void Memory::free(const orPointerAttributes& block) {
  const auto address = reinterpret_cast<uintptr_t>(block.pointer);
  std::unique_lock lock(mutex_);
  const MemoryRef buffer = std::move(buffers_.extract(address).mapped());
  lock.unlock();
  if (block.device >= 0) return regions_[block.device]->free(address);
  pinned_.remove(address);
  clEnqueueUnmapMemObject(mapping_queue_.get(), buffer.get(), block.pointer, 0,
                          nullptr, nullptr);
  clFinish(mapping_queue_.get());
}

// [opencl.memory.find] The driver finds an address among the blocks, and a buffer by the start of its block.
orPointerAttributes Memory::attributes(const void* pointer) const {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  for (size_t index = 0; index < regions_.size(); ++index) {
    if (!regions_[index]->contains(address)) continue;
    if (auto block = regions_[index]->blocks().find(address)) {
      return {orMemoryTypeDevice, static_cast<int>(index),
              reinterpret_cast<void*>(block->begin), block->size};
    }
  }
  if (auto block = pinned_.find(address)) {
    return {orMemoryTypeHost, -1, reinterpret_cast<void*>(block->begin),
            block->size};
  }
  return {orMemoryTypeUnmanaged, -1, nullptr, 0};
}

bool Memory::contains(const void* pointer) const {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  for (const auto& region : regions_) {
    if (region->contains(address)) return true;
  }
  return false;
}

Place Memory::place(const void* pointer) const {
  const orPointerAttributes block = attributes(pointer);
  if (block.type != orMemoryTypeDevice) return {};
  std::shared_lock lock(mutex_);
  const auto found = buffers_.find(reinterpret_cast<uintptr_t>(block.pointer));
  if (found == buffers_.end()) return {};
  return {found->second,
          static_cast<size_t>(static_cast<const char*>(pointer) -
                              static_cast<const char*>(block.pointer))};
}

// [-]
}  // namespace openreg::hardware
