// SPDX-License-Identifier: BSD-3-Clause
#include "common/openreg/core/failure.h"
#include "common/openreg/core/lookup.h"
#include "common/openreg/interface/openreg_tools.h"
#include "common/openreg/tools/injection.h"
#include "common/openreg/tools/observer.h"

#include <cstring>

using namespace openreg::hardware;

// [common.api-tools.inject] A list that cannot be parsed changes nothing.
orError_t orInject(const char* order) noexcept try {
  if (injection().configure(order)) return orSuccess;
  return fail(orErrorInvalidConfiguration, "The order ", order,
              " cannot be read; it must be a list such as "
              "alloc:3,copy:2,launch:10,lost:1@20.");
} catch (...) {
  return failWithException();
}

// [common.api-tools.observe] Setting an observer does not start the devices.
orError_t orSetCommandObserver(orCommandObserver call, void* data) noexcept
    try {
  observer().set(call, data);
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-tools.ipc] A handle says where a block is; opening it maps the same pages.
orError_t orIpcGetMemHandle(orIpcMemHandle_t* handle, void* pointer) noexcept
    try {
  if (orError_t error = enter()) return error;
  if (!handle) {
    return fail(orErrorInvalidValue,
                "orIpcGetMemHandle needs a place for the handle, not null.");
  }
  Memory& memory = machine().memory;
  orPointerAttributes attributes;
  if (orError_t error = checkBlock(pointer, &attributes)) return error;
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (memory.ipc().contains(address)) {
    return fail(orErrorInvalidValue, pointer,
                " is another process's; that process can hand it on.");
  }
  const IpcBlock block =
      memory.ipcBlock(address, attributes.size, attributes.device);
  *handle = {};
  std::memcpy(handle->reserved, &block, sizeof(block));
  return orSuccess;
} catch (...) {
  return failWithException();
}

orError_t orIpcOpenMemHandle(void** pointer, orIpcMemHandle_t handle) noexcept
    try {
  if (orError_t error = enter()) return error;
  if (!pointer) {
    return fail(orErrorInvalidValue,
                "orIpcOpenMemHandle needs a place for the address, not null.");
  }
  IpcBlock block;
  std::memcpy(&block, handle.reserved, sizeof(block));
  if (orError_t error = checkDevice(block.device)) return error;
  const uintptr_t address = machine().memory.ipc().open(block);
  if (!address) {
    return fail(orErrorInvalidResourceHandle, "The memory of process ",
                block.process,
                " cannot be opened; it has ended, or is another user's.");
  }
  *pointer = reinterpret_cast<void*>(address);
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-tools.ipc-close] Closing waits for work that may use the block, as orFree does.
orError_t orIpcCloseMemHandle(void* pointer) noexcept try {
  if (orError_t error = enter()) return error;
  if (orError_t error = synchronizeAll()) return error;
  if (machine().memory.ipc().close(reinterpret_cast<uintptr_t>(pointer))) {
    return orSuccess;
  }
  return fail(orErrorInvalidValue, pointer,
              " is not what orIpcOpenMemHandle returned, or is closed.");
} catch (...) {
  return failWithException();
}

// [-]
