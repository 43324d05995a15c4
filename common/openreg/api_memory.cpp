// SPDX-License-Identifier: BSD-3-Clause
#include "error.h"
#include "injection.h"
#include "machine.h"

#include <sys/mman.h>
#include <unistd.h>

using namespace openreg::hardware;

// [common.api-memory.allocate] A full device says how full it is.
orError_t orMalloc(void** pointer, size_t size) {
  if (orError_t error = enter()) return error;
  if (!pointer)
    return fail(orErrorInvalidValue,
                "orMalloc needs a place for the address, not null.");
  *pointer = nullptr;
  if (size == 0) return orSuccess;
  if (current().lost()) return current().health();
  if (injection().atAllocation()) {
    return fail(orErrorMemoryAllocation, "An allocation of ", size,
                " bytes was made to fail, by order.");
  }
  Region& region = machine().memory.device(currentIndex());
  const uintptr_t address = region.allocate(size);
  if (!address) {
    return fail(orErrorMemoryAllocation, "openreg:", currentIndex(), " has ",
                region.freeBytes(), " of ", region.size(),
                " bytes free, and no free block of ", size, " bytes.");
  }
  machine().memory.unpoison(address, size);
  *pointer = reinterpret_cast<void*>(address);
  return orSuccess;
}

// [common.api-memory.free] Pages must not go back under work that still uses them.
orError_t orFree(void* pointer) {
  if (!pointer) return orSuccess;
  if (orError_t error = enter()) return error;
  orPointerAttributes where;
  if (orError_t error = checkBlock(pointer, &where)) return error;
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (machine().memory.foreign().contains(address)) {
    return fail(orErrorInvalidValue, pointer,
                " is another process's; close it with orIpcCloseMemHandle.");
  }
  for (auto& device : machine().devices) device->drainAll();
  machine().memory.poison(address, where.size);
  machine().memory.device(where.device).free(address);
  return orSuccess;
}

// [common.api-memory.pinned] Host memory of a range that the device knows.
orError_t orMallocHost(void** pointer, size_t size) {
  if (orError_t error = enter()) return error;
  if (!pointer)
    return fail(orErrorInvalidValue,
                "orMallocHost needs a place for the address, not null.");
  *pointer = nullptr;
  if (size == 0) return orSuccess;
  const uintptr_t address = machine().memory.pinned().allocate(size);
  if (!address)
    return fail(orErrorMemoryAllocation, "There is no room for ", size,
                " bytes of pinned host memory.");
  *pointer = reinterpret_cast<void*>(address);
  return orSuccess;
}

orError_t orFreeHost(void* pointer) {
  if (!pointer) return orSuccess;
  if (orError_t error = enter()) return error;
  const orPointerAttributes where = machine().memory.attributes(pointer);
  if (where.type != orMemoryTypeHost || where.pointer != pointer) {
    return fail(orErrorInvalidValue, pointer,
                " is not what orMallocHost returned, or was freed before.");
  }
  for (auto& device : machine().devices) device->drainAll();
  machine().memory.pinned().free(reinterpret_cast<uintptr_t>(pointer));
  return orSuccess;
}

// [common.api-memory.ask] What can be asked about memory.
orError_t orMemGetInfo(size_t* free, size_t* total) {
  if (orError_t error = enter()) return error;
  if (!free || !total)
    return fail(orErrorInvalidValue,
                "orMemGetInfo needs two places, not null.");
  const Region& region = machine().memory.device(currentIndex());
  *free = region.freeBytes();
  *total = region.size();
  return orSuccess;
}

orError_t orPointerGetAttributes(orPointerAttributes* attributes,
                                 const void* pointer) {
  if (orError_t error = enter()) return error;
  if (!attributes)
    return fail(
        orErrorInvalidValue,
        "orPointerGetAttributes needs a place for the answer, not null.");
  *attributes = machine().memory.attributes(pointer);
  return orSuccess;
}

ptrdiff_t orDeviceWindow() { return enter() ? 0 : machine().memory.window(); }

// [common.api-memory.unprotect] The host's way in, page by page, for debugging only.
static orError_t protect(void* pointer, int rights) {
  if (orError_t error = enter()) return error;
  orPointerAttributes where;
  if (orError_t error = checkBlock(pointer, &where)) return error;
  const uintptr_t page = sysconf(_SC_PAGESIZE);
  const uintptr_t begin = reinterpret_cast<uintptr_t>(pointer) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(pointer) + where.size;
  if (mprotect(reinterpret_cast<void*>(begin), end - begin, rights) == 0) {
    return orSuccess;
  }
  return fail(orErrorUnknown, "The rights of ", pointer, " did not change.");
}

orError_t orMemoryUnprotect(void* pointer) {
  return protect(pointer, PROT_READ | PROT_WRITE);
}

orError_t orMemoryProtect(void* pointer) { return protect(pointer, PROT_NONE); }

// [-]
