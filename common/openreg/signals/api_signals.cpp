// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/core/lookup.h"
#include "torch_openreg/common/openreg/execution/enqueue.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/interface/openreg_signals.h"
#include "torch_openreg/common/openreg/races/races.h"
#include "torch_openreg/common/openreg/signals/watcher.h"
#include "torch_openreg/common/openreg/tools/observer.h"

using namespace openreg::hardware;

// [common.api-signals.word] The address that device code uses is also the one on which processes meet.
/// Where the driver reads and writes the number at `pointer`.
static uint32_t* findWord(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (address % sizeof(uint32_t) != 0) {
    throw fail(orErrorInvalidValue, "A number of 32 bits is aligned to 4 ",
               "bytes; ", pointer, " is not.");
  }
  const orPointerAttributes block = machine().memory.attributes(pointer);
  if (block.type == orMemoryTypeUnmanaged) {
    throw fail(orErrorInvalidValue, pointer,
               " is in no block of device memory or pinned host memory, where "
               "the number must be.");
  }
  const size_t room =
      reinterpret_cast<uintptr_t>(block.pointer) + block.size - address;
  if (room < sizeof(uint32_t)) {
    throw fail(orErrorInvalidValue, pointer, " has ", room,
               " bytes to the end of its block, and the number has 4.");
  }
  auto* word = static_cast<uint32_t*>(const_cast<void*>(pointer));
  return block.type == orMemoryTypeDevice ? openreg::onDevice(word) : word;
}

// [common.api-signals.wait] The watcher's thread must be granted before a stream can wait.
orError_t orStreamWaitValue32(orStream_t handle, const void* pointer,
                              uint32_t value) noexcept {
  return caught([&] {
    ObservedCall call("orStreamWaitValue32", orOperationWait);
    enter();
    const StreamRef stream = findStream(handle);
    const auto wait = std::make_shared<NumberWait>();
    wait->value = value;
    wait->word = findWord(pointer);
    watcher().start();
    const auto fill = [&](Command& command, Device& device) {
      device.admit();
      wait->device = &device;
      command.kind = Command::Kind::wait_value;
      command.name = "wait_value";
      command.recording = wait;
    };
    holdBack(stream, stream.queue->push(stream.handle, 0, fill));
  });
}

// [common.api-signals.write] A write is a kernel that stores a number and wakes whatever waits for it.
orError_t orStreamWriteValue32(orStream_t handle, void* pointer,
                               uint32_t value) noexcept {
  return caught([&] {
    ObservedCall call("orStreamWriteValue32", orOperationRecord);
    enter();
    uint32_t* const word = findWord(pointer);
    auto write = [word, value] { orSignalValue32(word, value); };
    submit(handle, &openreg::KernelOf<decltype(write)>::kernel, "write_value",
           &write, nullptr);
    if (racesAreWanted()) races().write(findStream(handle).handle, word, value);
  });
}

void orSignalValue32(void* pointer, uint32_t value) noexcept {
  auto* word = static_cast<uint32_t*>(pointer);
  std::atomic_ref(*word).store(value, std::memory_order_release);
  wakeAll(word);
}

// [-]
