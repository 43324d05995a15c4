// SPDX-License-Identifier: BSD-3-Clause
#include "error.h"
#include "launch.h"
#include "machine.h"

#include <cstring>

using namespace openreg::hardware;

// [common.api-memory.allocate] A full device says how full it is.
orError_t orMalloc(void** pointer, size_t size) {
  if (orError_t error = enter()) return error;
  if (!pointer)
    return fail(orErrorInvalidValue,
                "orMalloc needs a place for the address, not null.");
  *pointer = nullptr;
  if (size == 0) return orSuccess;
  Region& region = machine().memory.device(currentIndex());
  const uintptr_t address = region.allocate(size);
  if (!address) {
    return fail(orErrorMemoryAllocation, "openreg:", currentIndex(), " has ",
                region.freeBytes(), " of ", region.size(),
                " bytes free, and no free block of ", size, " bytes.");
  }
  *pointer = reinterpret_cast<void*>(address);
  return orSuccess;
}

// [common.api-memory.free] Pages must not go back under work that still uses them.
orError_t orFree(void* pointer) {
  if (!pointer) return orSuccess;
  if (orError_t error = enter()) return error;
  const orPointerAttributes where = machine().memory.attributes(pointer);
  if (where.type != orMemoryTypeDevice || where.pointer != pointer) {
    return fail(orErrorInvalidValue, pointer,
                " is not what orMalloc returned, or was freed before.");
  }
  machine().devices[where.device]->drainAll();
  machine()
      .memory.device(where.device)
      .free(reinterpret_cast<uintptr_t>(pointer));
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

// [common.api-memory.check] Each side of a copy is where the kind says, and large enough.
namespace {

orError_t checkSide(const void* pointer, size_t count, bool on_device,
                    const char* role, orPointerAttributes* where) {
  *where = machine().memory.attributes(pointer);
  if ((where->type == orMemoryTypeDevice) != on_device) {
    return fail(orErrorInvalidMemcpyDirection, "The ", role, " ", pointer,
                " is ", on_device ? "not in" : "in",
                " device memory, but the kind of the copy says the opposite.");
  }
  if (where->type == orMemoryTypeUnmanaged) return orSuccess;
  const size_t room = static_cast<char*>(where->pointer) + where->size -
                      static_cast<const char*>(pointer);
  if (count > room) {
    return fail(orErrorInvalidValue, "The ", role, " ", pointer, " has ", room,
                " bytes to the end of its block, and ", count,
                " were asked for.");
  }
  return orSuccess;
}

// [common.api-memory.sides] Both sides at once, and how the device reaches them.
struct Copy {
  void* target;
  const void* origin;
  orMemoryType to, from;
};

orError_t prepare(Copy* copy, void* dst, const void* src, size_t count,
                  orMemcpyKind kind) {
  if (kind < orMemcpyHostToHost || kind > orMemcpyDeviceToDevice) {
    return fail(orErrorInvalidMemcpyDirection, "There is no kind of copy ",
                int{kind}, ".");
  }
  if (!dst || !src) {
    return fail(orErrorInvalidValue, "A copy needs two addresses, not null.");
  }
  const bool to_device = kind & orMemcpyHostToDevice;
  const bool from_device = kind & orMemcpyDeviceToHost;
  orPointerAttributes to, from;
  orError_t error = checkSide(dst, count, to_device, "destination", &to);
  if (!error) error = checkSide(src, count, from_device, "source", &from);
  if (error) return error;
  *copy = {to_device ? openreg::onDevice(dst) : dst,
           from_device ? openreg::onDevice(src) : src, to.type, from.type};
  return orSuccess;
}

// Up to this size, copying twice costs less than waiting for the stream.
constexpr size_t kStagedBytes = 64 << 10;

}  // namespace

// [common.api-memory.copy] Pageable memory is staged or waited for; the rest is asynchronous.
orError_t orMemcpyAsync(void* dst, const void* src, size_t count,
                        orMemcpyKind kind, orStream_t handle) {
  if (orError_t error = enter()) return error;
  Stream* stream = findStream(handle);
  if (!stream) return orErrorInvalidResourceHandle;
  if (count == 0) return orSuccess;
  Copy copy{};
  if (orError_t error = prepare(&copy, dst, src, count, kind)) return error;

  if (copy.from == orMemoryTypeUnmanaged && copy.to == orMemoryTypeDevice &&
      count <= kStagedBytes) {
    auto staged = std::make_unique<char[]>(count);
    std::memcpy(staged.get(), copy.origin, count);
    return openreg::launch(
        handle, "memcpy",
        [target = copy.target, staged = std::move(staged), count] {
          std::memcpy(target, staged.get(), count);
        });
  }
  orError_t error = openreg::launch(handle, "memcpy", [copy, count] {
    std::memmove(copy.target, copy.origin, count);
  });
  if (error || (copy.to && copy.from)) return error;
  stream->device().drain(*stream);
  return stream->device().health();
}

// [common.api-memory.copy-wait] The copy that has happened when it returns.
orError_t orMemcpy(void* dst, const void* src, size_t count,
                   orMemcpyKind kind) {
  if (orError_t error = orMemcpyAsync(dst, src, count, kind, nullptr))
    return error;
  return orStreamSynchronize(nullptr);
}

// [common.api-memory.set] One byte, many times.
orError_t orMemsetAsync(void* pointer, int value, size_t count,
                        orStream_t handle) {
  if (orError_t error = enter()) return error;
  if (count == 0) return orSuccess;
  orPointerAttributes where;
  if (orError_t error = checkSide(pointer, count, true, "destination", &where))
    return error;
  return openreg::launch(handle, "memset",
                         [target = openreg::onDevice(pointer), value, count] {
                           std::memset(target, value, count);
                         });
}

// [-]
