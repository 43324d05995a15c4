// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/hooks/generator.h"
#include "torch_openreg/chapters/hooks/hooks.h"
#include "torch_openreg/chapters/hooks/host_memory.h"
#include "torch_openreg/common/bindings.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/waiting.h"

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

// [hooks.pinned.stats] PyTorch's counts of its host cache, under the names of `torch.cuda`.
static pybind11::dict hostMemoryStats() {
  const at::HostStats stats = [] {
    WithoutGil others_run;
    return hostAllocator().get_stats();
  }();
  pybind11::dict all;
  const auto add = [&](const std::string& name, const auto& stat) {
    all[(name + ".current").c_str()] = stat.current;
    all[(name + ".peak").c_str()] = stat.peak;
    all[(name + ".allocated").c_str()] = stat.allocated;
    all[(name + ".freed").c_str()] = stat.freed;
  };
  add("active_requests", stats.active_requests);
  add("active_bytes", stats.active_bytes);
  add("allocations", stats.allocations);
  add("allocated_bytes", stats.allocated_bytes);
  all["num_host_alloc"] = stats.num_host_alloc;
  all["num_host_free"] = stats.num_host_free;
  return all;
}

// [hooks.pinned.bindings] Each statistic has four numbers, and there are two ways to reset them.
static const ChapterBindings host_memory_bindings(
    "hooks", [](pybind11::module_& module) {
      module.def("host_memory_stats", &hostMemoryStats, Guarded());
      module.def(
          "reset_peak_host_memory_stats",
          [] { hostAllocator().reset_peak_stats(); }, Waits());
      module.def(
          "reset_accumulated_host_memory_stats",
          [] { hostAllocator().reset_accumulated_stats(); }, Waits());
    });

// [-]
}  // namespace openreg
