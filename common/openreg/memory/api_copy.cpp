// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/core/lookup.h"
#include "torch_openreg/common/openreg/execution/enqueue.h"
#include "torch_openreg/common/openreg/graphs/capture.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/memory/copy_engines.h"
#include "torch_openreg/common/openreg/races/races.h"
#include "torch_openreg/common/openreg/tools/injection.h"
#include "torch_openreg/common/openreg/tools/observer.h"

#include <cstring>
#include <memory>

using namespace openreg::hardware;

// [common.api-copy.check] Each side of a copy must be where the kind says, and large enough.
namespace {

orMemoryType checkSide(const void* pointer, size_t count, bool on_device,
                       const char* role) {
  const orPointerAttributes where = machine().memory.attributes(pointer);
  const bool is_unmanaged = where.type == orMemoryTypeUnmanaged;
  if (is_unmanaged && machine().memory.contains(pointer)) {
    throw fail(orErrorInvalidValue, "The ", role, " ", pointer,
               " is an address of the driver, but in no block; it was freed, "
               "or it is past the end of one.");
  }
  if ((where.type == orMemoryTypeDevice) != on_device) {
    throw fail(orErrorInvalidMemcpyDirection, "The ", role, " ", pointer,
               " is ", on_device ? "not in" : "in",
               " device memory, but the kind of the copy says the opposite.");
  }
  const size_t room = static_cast<char*>(where.pointer) + where.size -
                      static_cast<const char*>(pointer);
  if (!is_unmanaged && count > room) {
    throw fail(orErrorInvalidValue, "The ", role, " ", pointer, " has ", room,
               " bytes to the end of its block, and ", count,
               " were asked for.");
  }
  return where.type;
}

// [common.api-copy.sides] The bits of the kind say which side is translated to a device address.
struct Copy {
  void* target;
  const void* origin;
  orMemoryType to, from;
};

Copy prepare(void* dst, const void* src, size_t count, int kind) {
  if (!dst || !src)
    throw fail(orErrorInvalidValue, "A copy needs two addresses, not null.");
  const bool to_device = kind & orMemcpyHostToDevice;
  const bool from_device = kind & orMemcpyDeviceToHost;
  const auto to = checkSide(dst, count, to_device, "destination");
  const auto from = checkSide(src, count, from_device, "source");
  return {to_device ? openreg::onDevice(dst) : dst,
          from_device ? openreg::onDevice(src) : src, to, from};
}

// [common.api-copy.submit] A copy is a kernel that fault injection counts as a copy.
template <class Body>
Position submitCopy(orStream_t handle, const char* name, Body body) {
  static_assert(sizeof(Body) <= orMaxArgumentBytes);
  const bool fails = injection().isDue("copy");
  return submit(handle, &openreg::KernelOf<Body>::kernel, name, &body,
                fails ? "a copy was made to fail, by order" : nullptr);
}

// [common.api-copy.announce] A copy touches what the device can reach; pageable memory is done with when the call returns.
void announceCopy(const Copy& copy, void* dst, const void* src, size_t count) {
  if (!accessesAreWanted()) return;
  forgetAnnounced();
  if (copy.to != orMemoryTypeUnmanaged) announce(dst, count, true);
  if (copy.from != orMemoryTypeUnmanaged) announce(src, count, false);
}

// Up to this size, copying twice costs less than waiting for the stream.
constexpr size_t kStagedBytes = 64 << 10;

}  // namespace

// [common.api-copy.copy] A copy of pageable memory is staged or waited for, every other copy is asynchronous.
orError_t orMemcpyAsync(void* dst, const void* src, size_t count,
                        orMemcpyKind wanted, orStream_t handle) noexcept {
  // A number, because it may be none of the kinds.
  return caught([&, kind = int{wanted}] {
    ObservedCall call("orMemcpyAsync", orOperationCopy, count, kind);
    enter();
    const StreamRef stream = findStream(handle);
    stream.check();
    if (kind < orMemcpyHostToHost || kind > orMemcpyDeviceToDevice) {
      throw fail(orErrorInvalidMemcpyDirection, "There is no kind of copy ",
                 kind, ".");
    }
    if (count == 0) return orSuccess;
    const Copy copy = prepare(dst, src, count, kind);
    const bool is_pageable = !copy.to || !copy.from;
    if (const auto capture = is_pageable ? captureOf(stream) : nullptr) {
      capture->refuse("orMemcpyAsync",
                      "copies memory that is neither the device's nor "
                      "pinned, and so must run now,");
    }
    if (copy.from == orMemoryTypeUnmanaged && copy.to == orMemoryTypeDevice &&
        count <= kStagedBytes) {
      announceCopy(copy, dst, src, count);
      auto staged = std::make_unique_for_overwrite<char[]>(count);
      std::memcpy(staged.get(), copy.origin, count);
      submitCopy(handle, "memcpy",
                 [target = copy.target, staged = std::move(staged), count] {
                   std::memcpy(target, staged.get(), count);
                 });
      return orSuccess;
    }
    if (is_pageable) checkMayWait("orMemcpyAsync");
    announceCopy(copy, dst, src, count);
    const Position position = submitCopy(handle, "memcpy", [copy, count] {
      copyBytes(copy.target, copy.origin, count);
    });
    return is_pageable ? waitFor(stream, position) : orSuccess;
  });
}

// [common.api-copy.copy-wait] The synchronous copy is an asynchronous one and a wait.
orError_t orMemcpy(void* dst, const void* src, size_t count,
                   orMemcpyKind wanted) noexcept {
  return caught([&, kind = int{wanted}] {
    ObservedCall call("orMemcpy", orOperationCopy, count, kind);
    checkMayWait("orMemcpy");
    const orError_t error = orMemcpyAsync(
        dst, src, count, static_cast<orMemcpyKind>(kind), nullptr);
    return error ? error : orStreamSynchronize(nullptr);
  });
}

// [common.api-copy.peer] One window covers all devices, so a copy between them only needs a check of their numbers.
static void checkPeers(const void* dst, int dst_device, const void* src,
                       int src_device) {
  const int to = machine().memory.attributes(dst).device;
  const int from = machine().memory.attributes(src).device;
  if (to != dst_device || from != src_device)
    throw fail(orErrorInvalidValue, "The copy is from openreg:", src_device,
               " to openreg:", dst_device, ", but the blocks are of ", from,
               " and ", to, " (-1: of no device).");
}

orError_t orMemcpyPeerAsync(void* dst, int dst_device, const void* src,
                            int src_device, size_t count,
                            orStream_t stream) noexcept {
  return caught([&] {
    ObservedCall call("orMemcpyPeerAsync", orOperationCopy, count,
                      orMemcpyDeviceToDevice);
    enter();
    for (int device : {dst_device, src_device}) checkDevice(device);
    findStream(stream).check();
    if (count == 0) return orSuccess;
    checkPeers(dst, dst_device, src, src_device);
    return orMemcpyAsync(dst, src, count, orMemcpyDeviceToDevice, stream);
  });
}

// [common.api-copy.set] Setting bytes is a kernel like any other.
orError_t orMemsetAsync(void* pointer, int value, size_t count,
                        orStream_t handle) noexcept {
  return caught([&] {
    ObservedCall call("orMemsetAsync", orOperationSet, count);
    enter();
    findStream(handle).check();
    if (count == 0) return;
    checkSide(pointer, count, true, "destination");
    if (accessesAreWanted()) {
      forgetAnnounced();
      announce(pointer, count, true);
    }
    submitCopy(handle, "memset",
               [target = openreg::onDevice(pointer), value, count] {
                 std::memset(target, value, count);
               });
  });
}

orError_t orMemset(void* pointer, int value, size_t count) noexcept {
  return caught([&] {
    ObservedCall call("orMemset", orOperationSet, count);
    checkMayWait("orMemset");
    const orError_t error = orMemsetAsync(pointer, value, count, nullptr);
    return error ? error : orStreamSynchronize(nullptr);
  });
}

// [-]
