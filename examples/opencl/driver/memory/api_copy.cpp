// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/examples/opencl/driver/core/machine.h"

#include <cstring>
#include <memory>

using namespace openreg::hardware;

namespace {

// [opencl.api-copy.side] Each side of a copy must be where the copy's kind says, and large enough.
struct Side {
  orPointerAttributes block;
  Place place;
};

orError_t findSide(Side* side, const void* pointer, size_t count,
                   bool on_device, const char* role) {
  const Memory& memory = *machine().memory;
  side->block = memory.attributes(pointer);
  const orMemoryType type = side->block.type;
  if (type == orMemoryTypeUnmanaged && memory.contains(pointer)) {
    return fail(orErrorInvalidValue, "The ", role, " ", pointer,
                " is an address of the driver, but in no block; it was freed, "
                "or it is past the end of one.");
  }
  if ((type == orMemoryTypeDevice) != on_device) {
    return fail(orErrorInvalidMemcpyDirection, "The ", role, " ", pointer,
                " is ", on_device ? "not in" : "in",
                " device memory, but the kind of the copy says the opposite.");
  }
  if (type == orMemoryTypeUnmanaged) return orSuccess;
  const size_t room = static_cast<char*>(side->block.pointer) +
                      side->block.size - static_cast<const char*>(pointer);
  if (count > room) {
    return fail(orErrorInvalidValue, "The ", role, " ", pointer, " has ", room,
                " bytes to the end of its block, and ", count,
                " were asked for.");
  }
  if (on_device) side->place = memory.place(pointer);
  return orSuccess;
}

// [opencl.api-copy.overlap] OpenCL refuses to copy between overlapping parts of a buffer, so we refuse first, with a clear message.
orError_t checkOverlap(const Side& to, const Side& from, size_t count) {
  const size_t a = to.place.offset, b = from.place.offset;
  if (to.place.buffer != from.place.buffer || a + count <= b || b + count <= a)
    return orSuccess;
  return fail(orErrorInvalidValue,
              "OpenCL cannot copy between two parts of a block that overlap; "
              "copy by way of a third place.");
}

// [opencl.api-copy.enqueue] There are four commands for copies, one for each pair of sides.
struct Copy {
  void* dst;
  const void* src;
  size_t count;
};

orError_t enqueueHostCopy(LockedStream stream, const Copy& copy,
                          EventRef* command) {
  auto owned = std::make_unique<Copy>(copy);
  HostFunctions& functions = stream->device->host_functions;
  const auto run = [](void* data) {
    const std::unique_ptr<Copy> copy(static_cast<Copy*>(data));
    std::memcpy(copy->dst, copy->src, copy->count);
  };
  const orError_t error = submit(
      std::move(stream), "clEnqueueBarrierWithWaitList",
      [&](cl_command_queue queue, cl_event* event) {
        return functions.enqueue(machine().context, queue, run, owned.get(),
                                 event);
      },
      command);
  if (!error) owned.release();
  return error;
}

// [opencl.api-copy.sides] The command depends on which sides have a buffer.
orError_t enqueueCopy(LockedStream stream, const Side& to, const Side& from,
                      const Copy& copy, EventRef* command) {
  if (!to.place.buffer && !from.place.buffer) {
    return enqueueHostCopy(std::move(stream), copy, command);
  }
  return submit(
      std::move(stream), "A copy of OpenCL",
      [&](cl_command_queue queue, cl_event* event) {
        if (!from.place.buffer) {
          return clEnqueueWriteBuffer(queue, to.place.buffer.get(), CL_FALSE,
                                      to.place.offset, copy.count, copy.src, 0,
                                      nullptr, event);
        }
        if (!to.place.buffer) {
          return clEnqueueReadBuffer(queue, from.place.buffer.get(), CL_FALSE,
                                     from.place.offset, copy.count, copy.dst, 0,
                                     nullptr, event);
        }
        return clEnqueueCopyBuffer(
            queue, from.place.buffer.get(), to.place.buffer.get(),
            from.place.offset, to.place.offset, copy.count, 0, nullptr, event);
      },
      command);
}

}  // namespace

// [opencl.api-copy.copy] The host waits for a copy of pageable memory, because the program may change the memory afterwards.
orError_t orMemcpyAsync(void* dst, const void* src, size_t count,
                        orMemcpyKind kind, orStream_t handle) noexcept try {
  if (orError_t error = enter()) return error;
  LockedStream stream = findStream(handle);
  if (!stream) return orErrorInvalidResourceHandle;
  if (kind < orMemcpyHostToHost || kind > orMemcpyDeviceToDevice) {
    return fail(orErrorInvalidMemcpyDirection, "There is no kind of copy ",
                int{kind}, ".");
  }
  if (count == 0) return orSuccess;
  if (!dst || !src) {
    return fail(orErrorInvalidValue, "A copy needs two addresses, not null.");
  }
  Side to, from;
  orError_t error =
      findSide(&to, dst, count, kind & orMemcpyHostToDevice, "destination");
  if (!error) {
    error = findSide(&from, src, count, kind & orMemcpyDeviceToHost, "source");
  }
  if (!error && kind == orMemcpyDeviceToDevice) {
    if (dst == src) return orSuccess;
    error = checkOverlap(to, from, count);
  }
  const bool waits = to.block.type == orMemoryTypeUnmanaged ||
                     from.block.type == orMemoryTypeUnmanaged;
  if (!error && waits) error = checkMayWait();
  if (error) return error;
  Device& device = *stream->device;
  EventRef command;
  error = enqueueCopy(std::move(stream), to, from, {dst, src, count}, &command);
  return error || !waits ? error : waitFor(device, command);
} catch (...) {
  return failWithException();
}

// [opencl.api-copy.wait] The synchronous copy is an asynchronous copy followed by a wait.
orError_t orMemcpy(void* dst, const void* src, size_t count,
                   orMemcpyKind kind) noexcept try {
  if (orError_t error = checkMayWait()) return error;
  if (orError_t error = orMemcpyAsync(dst, src, count, kind, nullptr))
    return error;
  return orStreamSynchronize(nullptr);
} catch (...) {
  return failWithException();
}

// [opencl.api-copy.peer] All devices share a context, so the runtime moves the data for a copy between two of them.
orError_t orMemcpyPeerAsync(void* dst, int dst_device, const void* src,
                            int src_device, size_t count,
                            orStream_t stream) noexcept try {
  if (orError_t error = enter()) return error;
  for (int device : {dst_device, src_device}) {
    if (orError_t error = checkDevice(device)) return error;
  }
  if (!findStream(stream)) return orErrorInvalidResourceHandle;
  if (count == 0) return orSuccess;
  const int to = machine().memory->attributes(dst).device;
  const int from = machine().memory->attributes(src).device;
  if (to != dst_device || from != src_device) {
    return fail(orErrorInvalidValue, "The copy is from openreg:", src_device,
                " to openreg:", dst_device, ", but the blocks are of ", from,
                " and ", to, " (-1: of no device).");
  }
  return orMemcpyAsync(dst, src, count, orMemcpyDeviceToDevice, stream);
} catch (...) {
  return failWithException();
}

// [opencl.api-copy.set] A buffer is filled with a pattern, here of one byte.
orError_t orMemsetAsync(void* pointer, int value, size_t count,
                        orStream_t handle) noexcept try {
  if (orError_t error = enter()) return error;
  LockedStream stream = findStream(handle);
  if (!stream) return orErrorInvalidResourceHandle;
  if (count == 0) return orSuccess;
  Side side;
  if (orError_t error = findSide(&side, pointer, count, true, "destination")) {
    return error;
  }
  const auto pattern = static_cast<unsigned char>(value);
  return submit(std::move(stream), "clEnqueueFillBuffer",
                [&](cl_command_queue queue, cl_event* event) {
                  return clEnqueueFillBuffer(queue, side.place.buffer.get(),
                                             &pattern, 1, side.place.offset,
                                             count, 0, nullptr, event);
                });
} catch (...) {
  return failWithException();
}

orError_t orMemset(void* pointer, int value, size_t count) noexcept try {
  if (orError_t error = checkMayWait()) return error;
  if (orError_t error = orMemsetAsync(pointer, value, count, nullptr)) {
    return error;
  }
  return orStreamSynchronize(nullptr);
} catch (...) {
  return failWithException();
}

// [-]
