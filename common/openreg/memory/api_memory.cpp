// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/core/lookup.h"
#include "torch_openreg/common/openreg/memory/claim.h"
#include "torch_openreg/common/openreg/races/races.h"
#include "torch_openreg/common/openreg/tools/injection.h"
#include "torch_openreg/common/openreg/tools/observer.h"

using namespace openreg::hardware;

// [common.api-memory.allocate] The message of a full device distinguishes a lack of memory from fragmentation.
orError_t orMalloc(void** pointer, size_t size) noexcept try {
  ObservedCall call("orMalloc", orOperationAllocate, size);
  if (orError_t error = enter()) return error;
  if (!pointer) return refuseNull(__func__);
  *pointer = nullptr;
  if (size == 0) return orSuccess;
  if (current().sticky_error.isLost()) return current().sticky_error.report();
  if (injection().failsAllocation()) {
    return fail(orErrorMemoryAllocation, "An allocation of ", size,
                " bytes was made to fail, by order.");
  }
  Region& region = machine().memory.device(currentIndex());
  uintptr_t address = region.allocate(size);
  while (!address && machine().guards.recycleOldest(currentIndex())) {
    address = region.allocate(size);
  }
  if (!address) {
    return fail(orErrorMemoryAllocation, "openreg:", currentIndex(), " has ",
                region.freeBytes(), " of ", region.size(),
                " bytes free, and no free block of ", size, " bytes.");
  }
  if (config().guards_memory &&
      !machine().guards.open(address, size, currentIndex())) {
    region.free(address);
    return fail(orErrorMemoryAllocation,
                "The system gives no guards for another block; each takes two "
                "mappings, of which a process may have as many as "
                "vm.max_map_count says.");
  }
  machine().memory.unpoison(address, size);
  *pointer = reinterpret_cast<void*>(address);
  call.setBlock(*pointer, size, currentIndex());
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-memory.free] orFree waits for all work, because a pending write would bring the freed pages back.
orError_t orFree(void* pointer) noexcept try {
  if (!pointer) return orSuccess;
  ObservedCall call("orFree", orOperationFree);
  if (orError_t error = enter()) return error;
  orPointerAttributes attributes;
  if (orError_t error = checkBlock(pointer, &attributes)) return error;
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (machine().memory.ipc().contains(address)) {
    return fail(orErrorInvalidValue, pointer,
                " is another process's; close it with orIpcCloseMemHandle.");
  }
  Memory& memory = machine().memory;
  Region& region = memory.device(attributes.device);
  if (orError_t error = claimAndDrain(region.blocks(), pointer, "orMalloc")) {
    return error;
  }
  if (config().guards_memory) {
    machine().guards.noteFree(address);
    machine().guards.retire(address);
  } else {
    memory.poison(address, attributes.size);
    if (racesAreWanted()) races().giveBack(address, address + attributes.size);
    region.free(address);
  }
  call.setBlock(pointer, attributes.size, attributes.device);
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-memory.pinned] Pinned memory is a range that the driver recognizes.
orError_t orMallocHost(void** pointer, size_t size) noexcept try {
  ObservedCall call("orMallocHost", orOperationAllocate, size);
  if (orError_t error = enter()) return error;
  if (!pointer) return refuseNull(__func__);
  *pointer = nullptr;
  if (size == 0) return orSuccess;
  if (orError_t error = countCreation("pinned memory")) return error;
  const uintptr_t address = machine().memory.allocatePinned(size);
  if (!address)
    return fail(orErrorMemoryAllocation, "There is no room for ", size,
                " bytes of pinned host memory.");
  *pointer = reinterpret_cast<void*>(address);
  call.setBlock(*pointer, size, -1);
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-memory.free-pinned] Freeing pinned memory waits, too.
orError_t orFreeHost(void* pointer) noexcept try {
  if (!pointer) return orSuccess;
  ObservedCall call("orFreeHost", orOperationFree);
  if (orError_t error = enter()) return error;
  const orPointerAttributes attributes = machine().memory.attributes(pointer);
  if (attributes.type != orMemoryTypeHost || attributes.pointer != pointer) {
    return refuseBlock(pointer, "orMallocHost");
  }
  Region& region = machine().memory.pinned();
  if (orError_t error =
          claimAndDrain(region.blocks(), pointer, "orMallocHost")) {
    return error;
  }
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (racesAreWanted()) races().giveBack(address, address + attributes.size);
  region.free(address);
  call.setBlock(pointer, attributes.size, -1);
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-memory.query] Queries of memory wait for no stream.
orError_t orMemGetInfo(size_t* free, size_t* total) noexcept try {
  if (orError_t error = enter()) return error;
  if (!free || !total) return refuseNull(__func__);
  const Region& region = machine().memory.device(currentIndex());
  *free = region.freeBytes() + machine().guards.retiredBytes(currentIndex());
  *total = region.size();
  return orSuccess;
} catch (...) {
  return failWithException();
}

orError_t orPointerGetAttributes(orPointerAttributes* attributes,
                                 const void* pointer) noexcept try {
  if (orError_t error = enter()) return error;
  if (!attributes) return refuseNull(__func__);
  *attributes = machine().memory.attributes(pointer);
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [-]
