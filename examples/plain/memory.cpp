// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/plain/machine.h"

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
void allocate(Region& region, void** pointer, size_t size,
              const char* function) {
  void*& block = answer(pointer, function) = nullptr;
  if (size == 0) return;
  block = reinterpret_cast<void*>(region.allocate(size));
  if (block) return;
  throw fail(orErrorMemoryAllocation, function, " has no room for ", size,
             " bytes; ", region.freeBytes(), " of ", region.size(),
             " are free.");
}

/// Claims the block, so that no other call finds it, and then waits for the
/// work that may still use it.
void release(Region& region, void* pointer, const char* origin) {
  if (!pointer) return;
  checkMayWait();
  const auto begin = reinterpret_cast<uintptr_t>(pointer);
  if (!region.blocks().claim(begin)) throw refuseBlock(pointer, origin);
  machine().waitForAll();
  region.free(begin);
}

// [-]
}  // namespace

// [plain.memory.api] The four functions of allocating and freeing.
orError_t orMalloc(void** pointer, size_t size) noexcept {
  return guarded([&] {
    allocate(machine().memory[current()], pointer, size, "orMalloc");
  });
}

orError_t orFree(void* pointer) noexcept {
  return guarded([&] {
    const int device = std::max(attributesOf(pointer).device, 0);
    release(machine().memory[device], pointer, "orMalloc");
  });
}

orError_t orMallocHost(void** pointer, size_t size) noexcept {
  return guarded(
      [&] { allocate(machine().pinned, pointer, size, "orMallocHost"); });
}

orError_t orFreeHost(void* pointer) noexcept {
  return guarded([&] { release(machine().pinned, pointer, "orMallocHost"); });
}

// [plain.memory.queries] What the driver says of its memory, and of an address.
orError_t orMemGetInfo(size_t* free, size_t* total) noexcept {
  return guarded([&] {
    answer(free, "orMemGetInfo") = machine().memory[current()].freeBytes();
    answer(total, "orMemGetInfo") = Machine::kMemory;
  });
}

orError_t orPointerGetAttributes(orPointerAttributes* attributes,
                                 const void* pointer) noexcept {
  return guarded([&] {
    answer(attributes, "orPointerGetAttributes") = attributesOf(pointer);
  });
}

// [plain.copy.check] Each side of a copy must be where the kind says, and large enough.
namespace {

orMemoryType checkSide(const void* pointer, size_t count, bool on_device) {
  if (!pointer)
    throw fail(orErrorInvalidValue, "A copy needs two addresses, not null.");
  const orPointerAttributes found = attributesOf(pointer);
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  bool ours = machine().pinned.contains(address);
  for (const Region& region : machine().memory)
    ours = ours || region.contains(address);
  const bool is_unmanaged = found.type == orMemoryTypeUnmanaged;
  if (is_unmanaged && ours) {
    throw fail(orErrorInvalidValue, pointer,
               " is in no block; it was freed, or is past the end of one.");
  }
  if ((found.type == orMemoryTypeDevice) != on_device) {
    throw fail(orErrorInvalidMemcpyDirection, pointer, " is ",
               on_device ? "not in" : "in",
               " device memory, but the kind of the copy says the opposite.");
  }
  const size_t rest =
      reinterpret_cast<uintptr_t>(found.pointer) + found.size - address;
  if (is_unmanaged || count <= rest) return found.type;
  throw fail(orErrorInvalidValue, pointer, " has ", rest,
             " bytes to the end of its block, and ", count, " were asked for.");
}

// [plain.copy] A copy is a command; a pageable source is read before the call returns, and a pageable target written.
void copy(void* dst, const void* src, size_t count, orMemcpyKind kind,
          orStream_t stream) {
  machine().get(stream);  // Checked even if nothing is copied.
  if (kind < orMemcpyHostToHost || kind > orMemcpyDeviceToDevice) {
    throw fail(orErrorInvalidMemcpyDirection, "There is no kind of copy ",
               int{kind}, ".");
  }
  if (count == 0) return;
  const auto to = checkSide(dst, count, kind & orMemcpyHostToDevice);
  const auto from = checkSide(src, count, kind & orMemcpyDeviceToHost);
  if (to == orMemoryTypeUnmanaged) {
    checkMayWait();
    machine().wait(
        machine().enqueue(stream, [=] { std::memmove(dst, src, count); }));
  } else if (from == orMemoryTypeUnmanaged) {
    const auto* bytes = static_cast<const char*>(src);
    machine().enqueue(stream,
                      [dst, staged = std::vector(bytes, bytes + count)] {
                        std::memcpy(dst, staged.data(), staged.size());
                      });
  } else {
    machine().enqueue(stream, [=] { std::memmove(dst, src, count); });
  }
}

// [plain.copy.peer] A copy between devices differs in that the caller names both.
void copyPeer(void* dst, int to, const void* src, int from, size_t count,
              orStream_t stream) {
  checkDevice(to);
  checkDevice(from);
  for (auto [side, device] :
       {std::pair<const void*, int>(dst, to), {src, from}}) {
    if (count && attributesOf(side).device != device)
      throw fail(orErrorInvalidValue, side, " is not on openreg:", device, ".");
  }
  copy(dst, src, count, orMemcpyDeviceToDevice, stream);
}

// [plain.copy.set] Setting bytes needs one address, which must be the device's.
void set(void* pointer, int value, size_t count, orStream_t stream) {
  machine().get(stream);
  if (count == 0) return;
  checkSide(pointer, count, /*on_device=*/true);
  machine().enqueue(stream, [=] { std::memset(pointer, value, count); });
}

// [plain.copy.waiting] What copies or sets and then waits uses the default stream.
template <class Work>
orError_t andWait(Work work) noexcept {
  return guarded([&] {
    checkMayWait();
    work();
    machine().wait(machine().get(orStream_t{}).last);
  });
}

// [-]
}  // namespace

// [plain.copy.api] Each of the three comes in two forms: with a stream, and waiting.
orError_t orMemcpyAsync(void* dst, const void* src, size_t count,
                        orMemcpyKind kind, orStream_t stream) noexcept {
  return guarded([&] { copy(dst, src, count, kind, stream); });
}

orError_t orMemcpy(void* dst, const void* src, size_t count,
                   orMemcpyKind kind) noexcept {
  return andWait([&] { copy(dst, src, count, kind, nullptr); });
}

orError_t orMemcpyPeerAsync(void* dst, int to, const void* src, int from,
                            size_t count, orStream_t stream) noexcept {
  return guarded([&] { copyPeer(dst, to, src, from, count, stream); });
}

orError_t orMemsetAsync(void* pointer, int value, size_t count,
                        orStream_t stream) noexcept {
  return guarded([&] { set(pointer, value, count, stream); });
}

orError_t orMemset(void* pointer, int value, size_t count) noexcept {
  return andWait([&] { set(pointer, value, count, nullptr); });
}

// [-]
