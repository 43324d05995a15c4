// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/core/lookup.h"
#include "torch_openreg/common/openreg/graphs/capture.h"
#include "torch_openreg/common/openreg/races/races.h"
#include "torch_openreg/common/openreg/tools/observer.h"

#include <cstdint>
#include <new>

using namespace openreg::hardware;

// [common.api-guards.ask] The question starts nothing, so an allocator can ask before it allocates.
orError_t orMemoryIsGuarded(int* is_guarded) noexcept try {
  if (!is_guarded) return refuseNull(__func__);
  *is_guarded = config().guards_memory;
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-guards.retirement] A command's arguments are destroyed on a failed device, too, so the block is closed there.
/// A command that does nothing but close the block that is its argument.
static const orKernel kRetirement{
    "free", sizeof(uintptr_t), nullptr, [](void*) {},
    [](void* block) {
      machine().guards.retire(*static_cast<const uintptr_t*>(block));
    }};

static orError_t enqueueRetirement(const StreamRef& stream, uintptr_t block) {
  Position position;
  return stream.queue->push(
      stream.handle, &position, sizeof(block),
      [](Device& device) {
        device.workers.start();
        return orSuccess;
      },
      [&](Command& command) {
        command.kernel = &kRetirement;
        command.name = kRetirement.name;
        new (command.arguments()) uintptr_t(block);
      });
}

// [common.api-guards.retire] From here on the host finds no block, and the device does until its stream is here.
orError_t orRetireBlock(void* pointer, orStream_t handle) noexcept try {
  ObservedCall call("orRetireBlock", orOperationFree);
  if (orError_t error = enter()) return error;
  if (!config().guards_memory) {
    return fail(
        orErrorNotSupported,
        "orRetireBlock is for guarded memory (OPENREG_SANITIZE=memory); "
        "call orFree.");
  }
  orPointerAttributes attributes;
  if (orError_t error = checkBlock(pointer, &attributes)) return error;
  const StreamRef stream = findStream(handle);
  if (!stream) return orErrorInvalidResourceHandle;
  if (orError_t error = checkNotCaptured(stream, __func__)) return error;
  Memory& memory = machine().memory;
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  BlockTable& blocks = memory.device(attributes.device).blocks();
  if (!blocks.claim(address)) return refuseBlock(pointer, "orMalloc");
  try {
    machine().guards.noteFree(address);
    const orError_t error = enqueueRetirement(stream, address);
    if (error) blocks.unclaim(address);
    call.setBlock(pointer, attributes.size, attributes.device);
    return error;
  } catch (...) {
    blocks.unclaim(address);
    throw;
  }
} catch (...) {
  return failWithException();
}

// [common.api-guards.violations] A program may look at its violations, and forget them.
orError_t orVisitViolations(void (*visit)(const orViolation*, void*),
                            void* data) noexcept try {
  if (!visit) return refuseNull(__func__);
  violations().visit(visit, data);
  return orSuccess;
} catch (...) {
  return failWithException();
}

orError_t orClearViolations() noexcept try {
  violations().clear();
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [-]
