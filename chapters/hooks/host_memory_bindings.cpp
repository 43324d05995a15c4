// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/hooks/host_memory.h"
#include "torch_openreg/common/bindings.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/waiting.h"

namespace openreg {

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
using Waits = pybind11::call_guard<NotForked, pybind11::gil_scoped_release>;

static const ChapterBindings host_memory_bindings(
    "hooks", [](pybind11::module_& module) {
      module.def("host_memory_stats", &hostMemoryStats,
                 pybind11::call_guard<NotForked>());
      module.def(
          "reset_peak_host_memory_stats",
          [] { hostAllocator().reset_peak_stats(); }, Waits());
      module.def(
          "reset_accumulated_host_memory_stats",
          [] { hostAllocator().reset_accumulated_stats(); }, Waits());
    });

// [-]
}  // namespace openreg
