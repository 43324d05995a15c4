// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/device/stream.h"
#include "common/bindings.h"
#include "common/error.h"

namespace openreg {

// [device.bindings] What Python needs beyond `torch.accelerator`.
static const ChapterBindings bindings("device", [](pybind11::module_& module) {
  using Release = pybind11::call_guard<pybind11::gil_scoped_release>;
  module.attr("device_type") = static_cast<int>(kDeviceType);
  module.def("device_count", [] { return int{deviceCount()}; });
  module.def("current_device", [] { return int{currentDevice()}; });
  module.def("exchange_device",
             [](c10::DeviceIndex index) { return int{exchangeDevice(index)}; });
  module.def("maybe_exchange_device", [](c10::DeviceIndex index) {
    return int{maybeExchangeDevice(index)};
  });
  module.def("resolve_device",
             [](int index) { return int{resolveDevice(index)}; });
  // Whoever waits for the device must not keep other Python threads waiting.
  module.def("synchronize", &synchronizeDevice, Release());
  module.def(
      "reset",
      [](c10::DeviceIndex index) {
        DeviceScope scope(index);
        check(orDeviceReset());
      },
      Release());
});

// [-]
}  // namespace openreg
