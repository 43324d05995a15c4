// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/core/lookup.h"
#include "torch_openreg/common/openreg/execution/host_waiters.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/common/openreg/memory/claim.h"
#include "torch_openreg/common/openreg/races/races.h"
#include "torch_openreg/common/openreg/tools/injection.h"
#include "torch_openreg/common/openreg/tools/observer.h"
#include "torch_openreg/common/openreg/tools/step_log.h"

#include <cstring>
#include <string>
#include <utility>

using namespace openreg::hardware;

// [common.api-tools.steps] Steps are kept only under a schedule that is chosen.
orError_t orVisitSteps(void (*visit)(const orStep*, void*), void* data) noexcept
    try {
  if (!visit) return refuseNull(__func__);
  stepLog().visit(visit, data);
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-tools.inject] A list that cannot be parsed changes nothing.
orError_t orInject(const char* order) noexcept try {
  if (!config().problem.empty()) {
    return setLastError(orErrorInvalidConfiguration, config().problem);
  }
  Faults faults;
  std::string problem = parse(order, config().device_count, &faults);
  if (!problem.empty()) {
    return setLastError(orErrorInvalidConfiguration, std::move(problem));
  }
  injection().set(std::move(faults));
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-tools.wait-callback] The callback belongs to the calling thread, so the waits of other threads do not end early.
orError_t orSetWaitCallback(int64_t nanoseconds, orWaitCallback callback,
                            void* data) noexcept try {
  if (callback && nanoseconds <= 0) {
    return fail(orErrorInvalidValue, "A wait cannot call back every ",
                nanoseconds, " ns.");
  }
  wait_callback = {nanoseconds, callback, data};
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-tools.observe] Adding an observer does not start the devices.
orError_t orAddObserver(orObserver_t* observer, orObserve observe,
                        void* data) noexcept try {
  if (!observer || !observe) {
    return fail(orErrorInvalidValue,
                "orAddObserver needs a place for the observer and a function, "
                "not null.");
  }
  *observer = observers().add(observe, data);
  return orSuccess;
} catch (...) {
  return failWithException();
}

orError_t orRemoveObserver(orObserver_t observer) noexcept try {
  if (observers().remove(observer)) return orSuccess;
  return fail(orErrorInvalidResourceHandle,
              "There is no such observer; it was removed, or never added.");
} catch (...) {
  return failWithException();
}

// [common.api-tools.range] Each thread has its own ranges.
orError_t orRangePush(const char* name) noexcept try {
  pushRange(name);
  return orSuccess;
} catch (...) {
  return failWithException();
}

orError_t orRangePop() noexcept try {
  if (popRange()) return orSuccess;
  return fail(orErrorInvalidValue,
              "orRangePop has no range to end; this thread has begun none, or "
              "has ended all of them.");
} catch (...) {
  return failWithException();
}

// [common.api-tools.ipc] A handle says where a block is, and only its owner hands it out.
orError_t orIpcGetMemHandle(orIpcMemHandle_t* handle, void* pointer) noexcept
    try {
  if (orError_t error = enter()) return error;
  if (!handle) return refuseNull(__func__);
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

// [common.api-tools.ipc-open] Opening a handle maps the pages of the other process's block.
orError_t orIpcOpenMemHandle(void** pointer, orIpcMemHandle_t handle) noexcept
    try {
  if (orError_t error = enter()) return error;
  if (!pointer) return refuseNull(__func__);
  IpcBlock block;
  std::memcpy(&block, handle.reserved, sizeof(block));
  if (block.magic != IpcBlock::kMagic) {
    return fail(orErrorInvalidResourceHandle,
                "The handle is not one that orIpcGetMemHandle wrote.");
  }
  if (orError_t error = checkDevice(block.device)) return error;
  uintptr_t address = 0;
  if (orError_t error = machine().memory.ipc().open(block, &address)) {
    return error;
  }
  *pointer = reinterpret_cast<void*>(address);
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [common.api-tools.ipc-close] Closing waits for work that may use the block, as orFree does.
orError_t orIpcCloseMemHandle(void* pointer) noexcept try {
  if (orError_t error = enter()) return error;
  Memory& memory = machine().memory;
  const size_t size = memory.attributes(pointer).size;
  if (orError_t error =
          claimAndDrain(memory.ipc().blocks(), pointer, "orIpcOpenMemHandle")) {
    return error;
  }
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  if (racesAreWanted()) races().giveBack(address, address + size);
  memory.ipc().close(address);
  return orSuccess;
} catch (...) {
  return failWithException();
}

// [-]
