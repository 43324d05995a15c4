// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/hosts/across_hosts.h"
#include "torch_openreg/common/bindings.h"

#include <pybind11/chrono.h>
#include <pybind11/functional.h>
#include <torch/csrc/utils/pybind.h>

namespace openreg {

// [distributed.hosts.bindings] Python makes the engine, because PyTorch exports no other way to make one.
static const ChapterBindings hosts_bindings(
    "distributed", [](pybind11::module_& module) {
      module.def("set_engine", &spanHosts,
                 "The function that makes an engine between hosts from a "
                 "store, a rank, a number of ranks and a time limit.");
      module.def("end_searches", &endSearches);
    });

// [-]
}  // namespace openreg
