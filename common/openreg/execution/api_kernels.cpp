// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/core/lookup.h"
#include "torch_openreg/common/openreg/execution/enqueue.h"
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/common/openreg/tools/injection.h"
#include "torch_openreg/common/openreg/tools/observer.h"

using namespace openreg::hardware;

// [common.api-kernels.launch] Every kernel enters its queue through one function.
orError_t orLaunchCommand(const orKernel* kernel, const char* name,
                          void* arguments, orStream_t handle) noexcept try {
  ObservedCall call("orLaunchCommand", orOperationLaunch);
  if (orError_t error = enter()) return error;
  if (!kernel || kernel->bytes > orMaxArgumentBytes) {
    return fail(orErrorInvalidValue, "A launch needs a kernel with at most ",
                int{orMaxArgumentBytes}, " bytes of arguments.");
  }
  const bool fails = injection().failsLaunch();
  return submit(handle, kernel, name ? name : kernel->name, arguments,
                fails ? "a launch was made to fail, by order" : nullptr);
} catch (...) {
  return failWithException();
}

// [common.api-kernels.protect] A debugger can get access to the front mapping, page by page.
ptrdiff_t orDeviceWindow() noexcept {
  return enter() ? 0 : machine().memory.window();
}

static orError_t setHostAccess(const void* pointer, bool access) noexcept try {
  if (orError_t error = enter()) return error;
  return machine().memory.hostAccess().set(pointer, access);
} catch (...) {
  return failWithException();
}

orError_t orMemoryUnprotect(void* pointer) noexcept {
  return setHostAccess(pointer, true);
}

orError_t orMemoryProtect(void* pointer) noexcept {
  return setHostAccess(pointer, false);
}

// [-]
