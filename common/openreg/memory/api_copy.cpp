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

orError_t checkSide(const void* pointer, size_t count, bool on_device,
                    const char* role, orPointerAttributes* where) {
  *where = machine().memory.attributes(pointer);
  if (where->type == orMemoryTypeUnmanaged &&
      machine().memory.contains(pointer)) {
    return fail(orErrorInvalidValue, "The ", role, " ", pointer,
                " is an address of the driver, but in no block; it was freed, "
                "or it is past the end of one.");
  }
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

// [common.api-copy.sides] The bits of the kind say which side is translated to a device address.
struct Copy {
  void* target;
  const void* origin;
  orMemoryType to, from;
};

orError_t prepare(Copy* copy, void* dst, const void* src, size_t count,
                  orMemcpyKind kind) {
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

// [common.api-copy.submit] A copy is a kernel that fault injection counts as a copy.
template <class Body>
orError_t submitCopy(orStream_t handle, const char* name, Body body,
                     Position* position = nullptr) {
  static_assert(sizeof(Body) <= orMaxArgumentBytes);
  const bool fails = injection().failsCopy();
  return submit(handle, &openreg::KernelOf<Body>::kernel, name, &body,
                fails ? "a copy was made to fail, by order" : nullptr,
                position);
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
                        orMemcpyKind kind, orStream_t handle) noexcept try {
  ObservedCall call("orMemcpyAsync", orOperationCopy, count, kind);
  if (orError_t error = enter()) return error;
  const StreamRef stream = findStream(handle);
  if (!stream || !stream.position().device) return orErrorInvalidResourceHandle;
  if (kind < orMemcpyHostToHost || kind > orMemcpyDeviceToDevice) {
    return fail(orErrorInvalidMemcpyDirection, "There is no kind of copy ",
                int{kind}, ".");
  }
  if (count == 0) return orSuccess;
  Copy copy{};
  if (orError_t error = prepare(&copy, dst, src, count, kind)) return error;
  const bool is_pageable = !copy.to || !copy.from;
  if (const auto capture = is_pageable ? captureOf(stream) : nullptr) {
    return capture->refuse(__func__,
                           "copies memory that is neither the device's nor "
                           "pinned, and so must run now,");
  }
  if (copy.from == orMemoryTypeUnmanaged && copy.to == orMemoryTypeDevice &&
      count <= kStagedBytes) {
    announceCopy(copy, dst, src, count);
    auto staged = std::make_unique<char[]>(count);
    std::memcpy(staged.get(), copy.origin, count);
    return submitCopy(handle, "memcpy",
                      [target = copy.target, staged = std::move(staged),
                       count] { std::memcpy(target, staged.get(), count); });
  }
  if (orError_t error = is_pageable ? checkMayWait() : orSuccess) return error;
  announceCopy(copy, dst, src, count);
  Position position;
  orError_t error = submitCopy(
      handle, "memcpy",
      [copy, count] { copyBytes(copy.target, copy.origin, count); }, &position);
  if (error || !is_pageable) return error;
  return waitFor(stream, position);
} catch (...) {
  return failWithException();
}

// [common.api-copy.copy-wait] The synchronous copy is an asynchronous one and a wait.
orError_t orMemcpy(void* dst, const void* src, size_t count,
                   orMemcpyKind kind) noexcept try {
  ObservedCall call("orMemcpy", orOperationCopy, count, kind);
  if (orError_t error = checkMayWait()) return error;
  if (orError_t error = orMemcpyAsync(dst, src, count, kind, nullptr))
    return error;
  return orStreamSynchronize(nullptr);
} catch (...) {
  return failWithException();
}

// [common.api-copy.peer] One window covers all devices, so a copy between them only needs a check of their numbers.
static orError_t checkPeers(const void* dst, int dst_device, const void* src,
                            int src_device) {
  const int to = machine().memory.attributes(dst).device;
  const int from = machine().memory.attributes(src).device;
  if (to == dst_device && from == src_device) return orSuccess;
  return fail(orErrorInvalidValue, "The copy is from openreg:", src_device,
              " to openreg:", dst_device, ", but the blocks are of ", from,
              " and ", to, " (-1: of no device).");
}

orError_t orMemcpyPeerAsync(void* dst, int dst_device, const void* src,
                            int src_device, size_t count,
                            orStream_t stream) noexcept try {
  ObservedCall call("orMemcpyPeerAsync", orOperationCopy, count,
                    orMemcpyDeviceToDevice);
  if (orError_t error = enter()) return error;
  for (int device : {dst_device, src_device}) {
    if (orError_t error = checkDevice(device)) return error;
  }
  if (!findPosition(stream).device) return orErrorInvalidResourceHandle;
  if (count == 0) return orSuccess;
  if (orError_t error = checkPeers(dst, dst_device, src, src_device)) {
    return error;
  }
  return orMemcpyAsync(dst, src, count, orMemcpyDeviceToDevice, stream);
} catch (...) {
  return failWithException();
}

// [common.api-copy.set] Setting bytes is a kernel like any other.
orError_t orMemsetAsync(void* pointer, int value, size_t count,
                        orStream_t handle) noexcept try {
  ObservedCall call("orMemsetAsync", orOperationSet, count);
  if (orError_t error = enter()) return error;
  const StreamRef stream = findStream(handle);
  if (!stream || !stream.position().device) return orErrorInvalidResourceHandle;
  if (count == 0) return orSuccess;
  orPointerAttributes where;
  if (orError_t error = checkSide(pointer, count, true, "destination", &where))
    return error;
  if (accessesAreWanted()) {
    forgetAnnounced();
    announce(pointer, count, true);
  }
  return submitCopy(handle, "memset",
                    [target = openreg::onDevice(pointer), value, count] {
                      std::memset(target, value, count);
                    });
} catch (...) {
  return failWithException();
}

orError_t orMemset(void* pointer, int value, size_t count) noexcept try {
  ObservedCall call("orMemset", orOperationSet, count);
  if (orError_t error = checkMayWait()) return error;
  if (orError_t error = orMemsetAsync(pointer, value, count, nullptr)) {
    return error;
  }
  return orStreamSynchronize(nullptr);
} catch (...) {
  return failWithException();
}

// [-]
