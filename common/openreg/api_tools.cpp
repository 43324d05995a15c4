// SPDX-License-Identifier: BSD-3-Clause
#include "error.h"
#include "injection.h"
#include "machine.h"
#include "observer.h"
#include "openreg_tools.h"

#include <cstring>

using namespace openreg::hardware;

// [common.api-tools.inject] A wrong order changes nothing.
orError_t orInject(const char* order) {
  if (injection().order(order)) return orSuccess;
  return fail(orErrorInvalidConfiguration, "The order ", order,
              " cannot be read; it must be a list such as "
              "alloc:3,copy:2,launch:10,lost:1@20.");
}

// [common.api-tools.observe] Watching starts nothing.
orError_t orSetCommandObserver(orCommandObserver call, void* data) {
  observer().set(call, data);
  return orSuccess;
}

// [common.api-tools.ipc] A handle is the place of a block; opening it maps the same pages.
orError_t orIpcGetMemHandle(orIpcMemHandle_t* handle, void* pointer) {
  if (orError_t error = enter()) return error;
  if (!handle) {
    return fail(orErrorInvalidValue,
                "orIpcGetMemHandle needs a place for the handle, not null.");
  }
  Memory& memory = machine().memory;
  orPointerAttributes where;
  if (orError_t error = checkBlock(pointer, &where)) return error;
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (memory.foreign().contains(address)) {
    return fail(orErrorInvalidValue, pointer,
                " is another process's; that process can hand it on.");
  }
  const ForeignBlock block = memory.handle(address, where.size, where.device);
  *handle = {};
  std::memcpy(handle->reserved, &block, sizeof(block));
  return orSuccess;
}

orError_t orIpcOpenMemHandle(void** pointer, orIpcMemHandle_t handle) {
  if (orError_t error = enter()) return error;
  if (!pointer) {
    return fail(orErrorInvalidValue,
                "orIpcOpenMemHandle needs a place for the address, not null.");
  }
  ForeignBlock block;
  std::memcpy(&block, handle.reserved, sizeof(block));
  if (orError_t error = checkDevice(block.device)) return error;
  const uintptr_t address = machine().memory.foreign().open(block);
  if (!address) {
    return fail(orErrorInvalidResourceHandle, "The memory of process ",
                block.process,
                " cannot be opened; it has ended, or is another user's.");
  }
  *pointer = reinterpret_cast<void*>(address);
  return orSuccess;
}

// [common.api-tools.ipc-close] Work that still uses the block is waited for, as when memory is freed.
orError_t orIpcCloseMemHandle(void* pointer) {
  if (orError_t error = enter()) return error;
  for (auto& device : machine().devices) device->drainAll();
  if (machine().memory.foreign().close(reinterpret_cast<uintptr_t>(pointer))) {
    return orSuccess;
  }
  return fail(orErrorInvalidValue, pointer,
              " is not what orIpcOpenMemHandle returned, or is closed.");
}

// [-]
