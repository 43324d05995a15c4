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
orError_t orVisitSteps(void (*visit)(const orStep*, void*),
                       void* data) noexcept {
  return unforked([&] {
    if (!visit) throw refuseNull("orVisitSteps");
    stepLog().visit(visit, data);
  });
}

// [common.api-tools.inject] A list that cannot be parsed changes nothing.
orError_t orInject(const char* order) noexcept {
  return unforked([&] {
    if (!config().problem.empty()) {
      throw setLastError(orErrorInvalidConfiguration, config().problem);
    }
    Faults faults;
    std::string problem = parse(order, config().device_count, &faults);
    if (!problem.empty()) {
      throw setLastError(orErrorInvalidConfiguration, std::move(problem));
    }
    injection().set(std::move(faults));
  });
}

// [common.api-tools.wait-callback] The callback belongs to the calling thread, so the waits of other threads do not end early.
orError_t orSetWaitCallback(int64_t nanoseconds, orWaitCallback callback,
                            void* data) noexcept {
  return caught([&] {
    if (callback && nanoseconds <= 0) {
      throw fail(orErrorInvalidValue, "A wait cannot call back every ",
                 nanoseconds, " ns.");
    }
    wait_callback = {nanoseconds, callback, data};
  });
}

// [common.api-tools.observe] Adding an observer does not start the devices.
orError_t orAddObserver(orObserver_t* observer, orObserve observe,
                        void* data) noexcept {
  return caught([&] {
    if (!observer || !observe) {
      throw fail(orErrorInvalidValue,
                 "orAddObserver needs a place for the observer and a function, "
                 "not null.");
    }
    *observer = observers().add(observe, data);
  });
}

orError_t orRemoveObserver(orObserver_t observer) noexcept {
  return caught([&] {
    if (observers().remove(observer)) return;
    throw fail(orErrorInvalidResourceHandle,
               "There is no such observer; it was removed, or never added.");
  });
}

// [common.api-tools.range] Each thread has its own ranges.
orError_t orRangePush(const char* name) noexcept {
  return caught([&] { pushRange(name); });
}

orError_t orRangePop() noexcept {
  return caught([&] {
    if (popRange()) return;
    throw fail(orErrorInvalidValue,
               "orRangePop has no range to end; this thread has begun none, or "
               "has ended all of them.");
  });
}

// [common.api-tools.ipc] A handle says where a block is, and only its owner hands it out.
orError_t orIpcGetMemHandle(orIpcMemHandle_t* handle, void* pointer) noexcept {
  return guarded([&] {
    if (!handle) throw refuseNull("orIpcGetMemHandle");
    Memory& memory = machine().memory;
    const orPointerAttributes attributes = findBlock(pointer);
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    if (memory.ipc().contains(address)) {
      throw fail(orErrorInvalidValue, pointer,
                 " is another process's; that process can hand it on.");
    }
    const IpcBlock block =
        memory.ipcBlock(address, attributes.size, attributes.device);
    *handle = {};
    std::memcpy(handle->reserved, &block, sizeof(block));
  });
}

// [common.api-tools.ipc-open] Opening a handle maps the pages of the other process's block.
orError_t orIpcOpenMemHandle(void** pointer, orIpcMemHandle_t handle) noexcept {
  return guarded([&] {
    if (!pointer) throw refuseNull("orIpcOpenMemHandle");
    IpcBlock block;
    std::memcpy(&block, handle.reserved, sizeof(block));
    if (block.magic != IpcBlock::kMagic) {
      throw fail(orErrorInvalidResourceHandle,
                 "The handle is not one that orIpcGetMemHandle wrote.");
    }
    checkDevice(block.device);
    *pointer = reinterpret_cast<void*>(machine().memory.ipc().open(block));
  });
}

// [common.api-tools.ipc-close] Closing waits for work that may use the block, as orFree does.
orError_t orIpcCloseMemHandle(void* pointer) noexcept {
  return guarded([&] {
    Memory& memory = machine().memory;
    const size_t size = memory.attributes(pointer).size;
    claimAndDrain(memory.ipc().blocks(), pointer, "orIpcOpenMemHandle",
                  "orIpcCloseMemHandle");
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    if (racesAreWanted()) races().giveBack(address, address + size);
    memory.ipc().close(address);
  });
}

// [-]
