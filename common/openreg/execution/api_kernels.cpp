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
                          void* arguments, orStream_t handle) noexcept {
  return caught([&] {
    ObservedCall call("orLaunchCommand", orOperationLaunch);
    enter();
    if (!kernel || kernel->bytes > orMaxArgumentBytes) {
      throw fail(orErrorInvalidValue, "A launch needs a kernel with at most ",
                 int{orMaxArgumentBytes}, " bytes of arguments.");
    }
    submit(handle, kernel, name ? name : kernel->name, arguments,
           injection().launchFault());
  });
}

// [common.api-kernels.window] The front mapping is where pointers point, and the window is what kernels use.
ptrdiff_t orDeviceWindow() noexcept {
  ptrdiff_t window = 0;
  guarded([&] { window = machine().memory.window(); });
  return window;
}

// [-]
