// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/opencl/driver/core/machine.h"

using namespace openreg::hardware;

// [opencl.api-memory.allocate] A lost device cannot allocate memory.
orError_t orMalloc(void** pointer, size_t size) noexcept try {
  if (orError_t error = enter()) return error;
  if (!pointer) return refuseNull(__func__);
  *pointer = nullptr;
  if (size == 0) return orSuccess;
  Device& device = current();
  if (device.isLost()) return device.report();
  *pointer =
      machine().memory->allocate(device.index, size, device.info.largest_block);
  return *pointer ? orSuccess : orPeekAtLastError();
} catch (...) {
  return failWithException();
}

orError_t orMallocHost(void** pointer, size_t size) noexcept try {
  if (orError_t error = enter()) return error;
  if (!pointer) return refuseNull(__func__);
  *pointer = nullptr;
  if (size == 0) return orSuccess;
  *pointer = machine().memory->allocatePinned(size);
  return *pointer ? orSuccess : orPeekAtLastError();
} catch (...) {
  return failWithException();
}

// [opencl.api-memory.free] Freeing waits for all work, as cudaFree does.
static orError_t freeBlock(void* pointer, orMemoryType type,
                           const char* origin) {
  if (!pointer) return orSuccess;
  if (orError_t error = enter()) return error;
  Memory& memory = *machine().memory;
  const orPointerAttributes block = memory.attributes(pointer);
  const bool is_block = block.type == type && block.pointer == pointer;
  if (orError_t error = is_block ? checkMayWait() : orSuccess) return error;
  if (!is_block || !memory.claim(block)) {
    return fail(orErrorInvalidValue, pointer, " is not what ", origin,
                " returned, or was freed before.");
  }
  synchronizeAll();
  memory.free(block);
  return orSuccess;
}

orError_t orFree(void* pointer) noexcept try {
  return freeBlock(pointer, orMemoryTypeDevice, "orMalloc");
} catch (...) {
  return failWithException();
}

orError_t orFreeHost(void* pointer) noexcept try {
  return freeBlock(pointer, orMemoryTypeHost, "orMallocHost");
} catch (...) {
  return failWithException();
}

// [opencl.api-memory.query] Queries of memory wait for no stream.
orError_t orMemGetInfo(size_t* free, size_t* total) noexcept try {
  if (orError_t error = enter()) return error;
  if (!free || !total) return refuseNull(__func__);
  const Region& region = machine().memory->device(currentIndex());
  *free = region.freeBytes();
  *total = region.size();
  return orSuccess;
} catch (...) {
  return failWithException();
}

orError_t orPointerGetAttributes(orPointerAttributes* attributes,
                                 const void* pointer) noexcept try {
  if (orError_t error = enter()) return error;
  if (!attributes) return refuseNull(__func__);
  *attributes = machine().memory->attributes(pointer);
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [-]
