// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/bindings.h"
#include "torch_openreg/common/check.h"

namespace openreg {

// [compile.bindings] A generated program passes the driver's handle of the current stream to each kernel.
static const ChapterBindings compile_bindings(
    "compile", [](pybind11::module_& module) {
      module.def(
          "raw_stream",
          [](c10::DeviceIndex index) {
            return reinterpret_cast<uintptr_t>(currentNativeStream(index));
          },
          Guarded());
      module.def("check",
                 [](int error) { check(static_cast<orError_t>(error)); });
    });

// [-]
}  // namespace openreg
