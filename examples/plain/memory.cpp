// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/plain/machine.h"

#include <algorithm>
#include <cstring>
#include <vector>

using namespace openreg::hardware;

namespace {

// [plain.memory.attributes] The table of blocks in use says what an address belongs to.
orPointerAttributes attributesOf(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  const auto describe = [](const Block& block, orMemoryType type, int device) {
    return orPointerAttributes{
        type, device, reinterpret_cast<void*>(block.begin), block.size};
  };
  for (int device = 0; device < Machine::kDevices; ++device) {
    if (const auto block = machine().memory[device].blocks().find(address))
      return describe(*block, orMemoryTypeDevice, device);
  }
  if (const auto block = machine().pinned.blocks().find(address))
    return describe(*block, orMemoryTypeHost, -1);
  return {orMemoryTypeUnmanaged, -1, nullptr, 0};
}

// [plain.memory] Device memory and pinned memory differ in their range only.
orError_t allocate(Region& region, void** pointer, size_t size,
                   const char* function) {
  if (!pointer) return refuseNull(function);
  *pointer = nullptr;
  if (size == 0) return orSuccess;
  *pointer = reinterpret_cast<void*>(region.allocate(size));
  if (*pointer) return orSuccess;
  return fail(orErrorMemoryAllocation, function, " has no room for ", size,
              " bytes; ", region.freeBytes(), " of ", region.size(),
              " are free.");
}

/// Claims the block, so that no other call finds it, and then waits for the
/// work that may still use it.
orError_t release(Region& region, void* pointer, const char* origin) {
  if (!pointer) return orSuccess;
  if (const orError_t error = checkMayWait()) return error;
  const auto begin = reinterpret_cast<uintptr_t>(pointer);
  if (!region.blocks().claim(begin)) return refuseBlock(pointer, origin);
  machine().wait(machine().submitted());
  region.free(begin);
  return orSuccess;
}

// [-]
}  // namespace

// [plain.memory.api] The four functions of allocating and freeing.
orError_t orMalloc(void** pointer, size_t size) noexcept {
  return guarded([&] {
    return allocate(machine().memory[current()], pointer, size, "orMalloc");
  });
}

orError_t orFree(void* pointer) noexcept {
  return guarded([&] {
    const int device = attributesOf(pointer).device;
    return release(machine().memory[device < 0 ? 0 : device], pointer,
                   "orMalloc");
  });
}

orError_t orMallocHost(void** pointer, size_t size) noexcept {
  return guarded([&] {
    return allocate(machine().pinned, pointer, size, "orMallocHost");
  });
}

orError_t orFreeHost(void* pointer) noexcept {
  return guarded(
      [&] { return release(machine().pinned, pointer, "orMallocHost"); });
}

// [plain.memory.queries] What the driver says of its memory, and of an address.
orError_t orMemGetInfo(size_t* free, size_t* total) noexcept {
  return guarded([&] {
    if (!free || !total) return refuseNull("orMemGetInfo");
    *free = machine().memory[current()].freeBytes();
    *total = machine().memory[current()].size();
    return orSuccess;
  });
}

orError_t orPointerGetAttributes(orPointerAttributes* attributes,
                                 const void* pointer) noexcept {
  return guarded([&] {
    if (!attributes) return refuseNull("orPointerGetAttributes");
    *attributes = attributesOf(pointer);
    return orSuccess;
  });
}

// [plain.copy.check] Each side of a copy must be where the kind says, and large enough.
namespace {

orError_t checkSide(const void* pointer, size_t count, bool on_device,
                    orPointerAttributes* found) {
  if (!pointer)
    return fail(orErrorInvalidValue, "A copy needs two addresses, not null.");
  *found = attributesOf(pointer);
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  bool ours = machine().pinned.contains(address);
  for (const Region& region : machine().memory)
    ours = ours || region.contains(address);
  if (found->type == orMemoryTypeUnmanaged && ours) {
    return fail(orErrorInvalidValue, pointer,
                " is in no block; it was freed, or is past the end of one.");
  }
  if ((found->type == orMemoryTypeDevice) != on_device) {
    return fail(orErrorInvalidMemcpyDirection, pointer, " is ",
                on_device ? "not in" : "in",
                " device memory, but the kind of the copy says the opposite.");
  }
  const uintptr_t end =
      reinterpret_cast<uintptr_t>(found->pointer) + found->size;
  if (found->type == orMemoryTypeUnmanaged || count <= end - address)
    return orSuccess;
  return fail(orErrorInvalidValue, pointer, " has ", end - address,
              " bytes to the end of its block, and ", count,
              " were asked for.");
}

// [plain.copy.stream] Where nothing is copied, the stream and the kind are checked all the same.
orError_t checkStream(orStream_t stream) {
  return machine().with(stream, [](Stream&) { return orSuccess; });
}

orError_t checkKind(orMemcpyKind kind) {
  if (kind >= orMemcpyHostToHost && kind <= orMemcpyDeviceToDevice)
    return orSuccess;
  return fail(orErrorInvalidMemcpyDirection, "There is no kind of copy ",
              int{kind}, ".");
}

}  // namespace

// [plain.copy] A copy is a command; a pageable source is read before the call returns, and a pageable target written.
orError_t orMemcpyAsync(void* dst, const void* src, size_t count,
                        orMemcpyKind kind, orStream_t stream) noexcept {
  return guarded([&] {
    orError_t error = checkStream(stream);
    if (!error) error = checkKind(kind);
    if (error || count == 0) return error;
    orPointerAttributes to, from;
    error = checkSide(dst, count, kind & orMemcpyHostToDevice, &to);
    if (!error)
      error = checkSide(src, count, kind & orMemcpyDeviceToHost, &from);
    const bool waits = to.type == orMemoryTypeUnmanaged;
    if (!error && waits) error = checkMayWait();
    if (error) return error;
    if (from.type == orMemoryTypeUnmanaged && !waits) {
      const auto* bytes = static_cast<const char*>(src);
      return machine().enqueue(
          stream, [dst, staged = std::vector<char>(bytes, bytes + count)] {
            std::memcpy(dst, staged.data(), staged.size());
          });
    }
    uint64_t number = 0;
    error = machine().enqueue(
        stream, [=] { std::memmove(dst, src, count); }, &number);
    return error || !waits ? error : machine().wait(number);
  });
}

orError_t orMemcpy(void* dst, const void* src, size_t count,
                   orMemcpyKind kind) noexcept {
  if (const orError_t error = orMemcpyAsync(dst, src, count, kind, nullptr))
    return error;
  return orStreamSynchronize(nullptr);
}

// [plain.copy.peer] A copy between devices differs in that the caller names both.
orError_t orMemcpyPeerAsync(void* dst, int to, const void* src, int from,
                            size_t count, orStream_t stream) noexcept {
  return guarded([&] {
    orError_t error = checkDevice(to);
    if (!error) error = checkDevice(from);
    if (!error) error = checkStream(stream);
    if (error || count == 0) return error;
    for (auto [side, device] :
         {std::pair<const void*, int>(dst, to), {src, from}}) {
      if (attributesOf(side).device != device) {
        return fail(orErrorInvalidValue, side, " is not on openreg:", device,
                    ".");
      }
    }
    return orMemcpyAsync(dst, src, count, orMemcpyDeviceToDevice, stream);
  });
}

orError_t orMemcpyPeer(void* dst, int to, const void* src, int from,
                       size_t count) noexcept {
  if (const orError_t error =
          orMemcpyPeerAsync(dst, to, src, from, count, nullptr))
    return error;
  return orStreamSynchronize(nullptr);
}

// [plain.copy.set] Setting bytes needs one address, which must be the device's.
orError_t orMemsetAsync(void* pointer, int value, size_t count,
                        orStream_t stream) noexcept {
  return guarded([&] {
    orError_t error = checkStream(stream);
    if (error || count == 0) return error;
    orPointerAttributes found;
    error = checkSide(pointer, count, /*on_device=*/true, &found);
    if (error) return error;
    return machine().enqueue(stream,
                             [=] { std::memset(pointer, value, count); });
  });
}

orError_t orMemset(void* pointer, int value, size_t count) noexcept {
  if (const orError_t error = orMemsetAsync(pointer, value, count, nullptr))
    return error;
  return orStreamSynchronize(nullptr);
}

// [-]
