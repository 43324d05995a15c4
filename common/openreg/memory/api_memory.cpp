// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/core/lookup.h"
#include "torch_openreg/common/openreg/memory/claim.h"
#include "torch_openreg/common/openreg/races/races.h"
#include "torch_openreg/common/openreg/tools/injection.h"
#include "torch_openreg/common/openreg/tools/observer.h"

using namespace openreg::hardware;

// [common.api-memory.allocate] The message of a full device distinguishes a lack of memory from fragmentation.
orError_t orMalloc(void** pointer, size_t size) noexcept {
  return caught([&] {
    ObservedCall call("orMalloc", orOperationAllocate, size);
    if (!pointer) throw refuseNull("orMalloc");
    *pointer = nullptr;
    enter();
    if (size == 0) return;
    if (current().sticky_error.isLost()) current().sticky_error.report();
    if (injection().isDue("alloc")) {
      throw fail(orErrorMemoryAllocation, "An allocation of ", size,
                 " bytes was made to fail, by order.");
    }
    Region& region = machine().memory.device(currentIndex());
    uintptr_t address = region.allocate(size);
    while (!address && machine().guards.recycleOldest(currentIndex())) {
      address = region.allocate(size);
    }
    if (!address) {
      throw fail(orErrorMemoryAllocation, "openreg:", currentIndex(), " has ",
                 region.freeBytes(), " of ", region.size(),
                 " bytes free, and no free block of ", size, " bytes.");
    }
    if (config().guards_memory &&
        !machine().guards.open(address, size, currentIndex())) {
      region.free(address);
      throw fail(orErrorMemoryAllocation,
                 "The system gives no guards for another block; each takes two "
                 "mappings, of which a process may have as many as "
                 "vm.max_map_count says.");
    }
    machine().memory.unpoison(address, size);
    *pointer = reinterpret_cast<void*>(address);
    call.setBlock(*pointer, size, currentIndex());
  });
}

// [common.api-memory.free] orFree waits for all work, because a pending write would bring the freed pages back.
orError_t orFree(void* pointer) noexcept {
  return caught([&] {
    if (!pointer) return;
    ObservedCall call("orFree", orOperationFree);
    enter();
    const orPointerAttributes block = findBlock(pointer);
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    if (machine().memory.ipc().contains(address)) {
      throw fail(orErrorInvalidValue, pointer,
                 " is another process's; close it with orIpcCloseMemHandle.");
    }
    Memory& memory = machine().memory;
    Region& region = memory.device(block.device);
    claimAndDrain(region.blocks(), pointer, "orMalloc", "orFree");
    if (config().guards_memory) {
      machine().guards.noteFree(address);
      machine().guards.retire(address);
    } else {
      memory.poison(address, block.size);
      if (racesAreWanted()) races().giveBack(address, address + block.size);
      region.free(address);
    }
    call.setBlock(pointer, block.size, block.device);
  });
}

// [common.api-memory.pinned] Pinned memory is a range that the driver recognizes.
orError_t orMallocHost(void** pointer, size_t size) noexcept {
  return caught([&] {
    ObservedCall call("orMallocHost", orOperationAllocate, size);
    if (!pointer) throw refuseNull("orMallocHost");
    *pointer = nullptr;
    enter();
    if (size == 0) return;
    countCreation("pinned memory");
    const uintptr_t address = machine().memory.allocatePinned(size);
    if (!address)
      throw fail(orErrorMemoryAllocation, "There is no room for ", size,
                 " bytes of pinned host memory.");
    *pointer = reinterpret_cast<void*>(address);
    call.setBlock(*pointer, size, -1);
  });
}

// [common.api-memory.free-pinned] Freeing pinned memory waits, too.
orError_t orFreeHost(void* pointer) noexcept {
  return caught([&] {
    if (!pointer) return;
    ObservedCall call("orFreeHost", orOperationFree);
    enter();
    const orPointerAttributes block = machine().memory.attributes(pointer);
    if (block.type != orMemoryTypeHost || block.pointer != pointer)
      throw refuseBlock(pointer, "orMallocHost");
    Region& region = machine().memory.pinned();
    claimAndDrain(region.blocks(), pointer, "orMallocHost", "orFreeHost");
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    if (racesAreWanted()) races().giveBack(address, address + block.size);
    region.free(address);
    call.setBlock(pointer, block.size, -1);
  });
}

// [common.api-memory.query] Queries of memory wait for no stream.
orError_t orMemGetInfo(size_t* free, size_t* total) noexcept {
  return guarded([&] {
    if (!free || !total) throw refuseNull("orMemGetInfo");
    const Region& region = machine().memory.device(currentIndex());
    *free = region.freeBytes() + machine().guards.retiredBytes(currentIndex());
    *total = region.size();
  });
}

orError_t orPointerGetAttributes(orPointerAttributes* attributes,
                                 const void* pointer) noexcept {
  return guarded([&] {
    if (!attributes) throw refuseNull("orPointerGetAttributes");
    *attributes = machine().memory.attributes(pointer);
  });
}

// [-]
