// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/hooks/generator.h"
#include "torch_openreg/chapters/hooks/hooks.h"
#include "torch_openreg/common/bindings.h"
#include "torch_openreg/common/check.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <torch/csrc/utils/pybind.h>

namespace openreg {

// [hooks.bindings] Python needs little more than the generator, because PyTorch's class has the methods.
static const ChapterBindings hooks_bindings("hooks", [](pybind11::module_&
                                                            module) {
  if (!hooksAreOurs()) {
    throw pybind11::import_error(
        "torch_openreg cannot be loaded beside a backend that registered its "
        "hooks before: PyTorch takes one from outside; uninstall one of the "
        "two, or set TORCH_DEVICE_BACKEND_AUTOLOAD=0 and import the one that "
        "you want");
  }
  module.def("default_generator",
             [](c10::DeviceIndex index) { return defaultGenerator(index); });
  module.def("init", [] { at::detail::getPrivateUse1Hooks().init(); });
  module.def("is_forked", [] { return orIsForked() != 0; });
  module.def("is_started", [] {
    int started = 0;
    check(orDeviceIsStarted(0, &started));
    return started != 0;
  });
});

// [-]
}  // namespace openreg
