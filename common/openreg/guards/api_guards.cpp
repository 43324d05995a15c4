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
orError_t orMemoryIsGuarded(int* is_guarded) noexcept {
  return caught([&] {
    if (!is_guarded) throw refuseNull("orMemoryIsGuarded");
    *is_guarded = config().guards_memory;
  });
}

// [common.api-guards.retirement] The destructor of its argument closes the block, because it runs on a failed device, too.
/// A command that does nothing but close the block that is its argument.
static const orKernel kRetirement{
    "free", sizeof(uintptr_t), nullptr, [](void*) {},
    [](void* block) {
      machine().guards.retire(*static_cast<const uintptr_t*>(block));
    }};

static void enqueueRetirement(const StreamRef& stream, uintptr_t block) {
  const auto fill = [&](Command& command, Device& device) {
    device.workers.start();
    command.kernel = &kRetirement;
    command.name = kRetirement.name;
    new (command.arguments()) uintptr_t(block);
  };
  stream.queue->push(stream.handle, sizeof(block), fill);
}

// [common.api-guards.retire] The host no longer finds the block from now on, and device code not after its stream is here.
orError_t orRetireBlock(void* pointer, orStream_t handle) noexcept {
  return caught([&] {
    ObservedCall call("orRetireBlock", orOperationFree);
    enter();
    if (!config().guards_memory) {
      throw fail(
          orErrorNotSupported,
          "orRetireBlock is for guarded memory (OPENREG_SANITIZE=memory); "
          "call orFree.");
    }
    const orPointerAttributes block = findBlock(pointer);
    const StreamRef stream = findStream(handle);
    checkNotCaptured(stream, "orRetireBlock");
    Memory& memory = machine().memory;
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    BlockTable& blocks = memory.device(block.device).blocks();
    if (!blocks.claim(address)) throw refuseBlock(pointer, "orMalloc");
    call.setBlock(pointer, block.size, block.device);
    try {
      machine().guards.noteFree(address);
      enqueueRetirement(stream, address);
    } catch (...) {
      blocks.unclaim(address);
      throw;
    }
  });
}

// [-]
