// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/memory/allocator.h"
#include "torch_openreg/common/guarded.h"
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/bindings.h"
#include "torch_openreg/common/check.h"

namespace openreg {

// [device.bindings] What Python needs beyond `torch.accelerator`.
// A forked child is refused by all but the count and `memory_is_guarded`.
static void bindDevices(pybind11::module_& module) {
  module.attr("device_type") = static_cast<int>(kDeviceType);
  module.def("device_count", [] { return int{deviceCount()}; });
  module.def(
      "current_device", [] { return int{currentDevice()}; }, Guarded());
  module.def(
      "exchange_device",
      [](c10::DeviceIndex index) { return int{exchangeDevice(index)}; },
      Guarded());
  module.def(
      "maybe_exchange_device",
      [](c10::DeviceIndex index) { return int{maybeExchangeDevice(index)}; },
      Guarded());
  module.def(
      "resolve_device", [](int index) { return int{resolveDevice(index)}; },
      Guarded());
  module.def("synchronize", &synchronizeDevice, Waits());
  module.def(
      "reset",
      [](c10::DeviceIndex index) {
        DeviceScope scope(index);
        check(orDeviceReset());
      },
      Waits());
  module.def(
      "empty_cache", [] { allocator().emptyCache(); }, Waits());
  module.def("memory_is_guarded", &memoryIsGuarded);
  module.def("stream_of_handle", [](uintptr_t handle, c10::DeviceIndex index) {
    return streamOfHandle(reinterpret_cast<orStream_t>(handle), index).id();
  });
}

// [device.bindings.properties] The names are those of `torch.cuda`'s properties.
static void bindProperties(pybind11::module_& module) {
  using pybind11::literals::operator""_a;
  module.def("device_properties", [](int index) {
    orDeviceProp properties;
    check(orGetDeviceProperties(&properties, index));
    return pybind11::module_::import("types").attr("SimpleNamespace")(
        "name"_a = properties.name,
        "total_memory"_a = properties.totalGlobalMem,
        "multi_processor_count"_a = properties.multiProcessorCount);
  });
}

// [device.bindings.snapshot] The keys are those of `torch.cuda.memory_snapshot`.
static void bindSnapshot(pybind11::module_& module) {
  using pybind11::literals::operator""_a;
  module.def("memory_snapshot", [] {
    pybind11::list segments;
    for (const auto& segment : memorySnapshot()) {
      pybind11::list blocks;
      size_t address = segment.address;
      for (const auto& block : segment.blocks) {
        const char* state = block.allocated ? "active_allocated"
                            : block.active  ? "active_pending_free"
                                            : "inactive";
        blocks.append(
            pybind11::dict("address"_a = address, "size"_a = block.size,
                           "requested_size"_a = block.requested_size,
                           "state"_a = state, "frames"_a = pybind11::list()));
        address += block.size;
      }
      segments.append(pybind11::dict(
          "device"_a = int{segment.device}, "address"_a = segment.address,
          "total_size"_a = segment.total_size,
          "allocated_size"_a = segment.allocated_size,
          "active_size"_a = segment.active_size,
          "requested_size"_a = segment.requested_size,
          "stream"_a = reinterpret_cast<size_t>(segment.stream),
          "segment_type"_a = segment.is_large ? "large" : "small",
          "segment_pool_id"_a = segment.owner_private_pool_id,
          "is_expandable"_a = false, "frames"_a = pybind11::list(),
          "blocks"_a = blocks));
    }
    return segments;
  });
}

// [device.bindings.register] One static object adds the chapter's functions to the module.
static const ChapterBindings device_bindings("device",
                                             [](pybind11::module_& module) {
                                               bindDevices(module);
                                               bindProperties(module);
                                               bindSnapshot(module);
                                             });

// [-]
}  // namespace openreg
