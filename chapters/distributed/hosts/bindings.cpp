// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/hosts/across_hosts.h"
#include "torch_openreg/chapters/distributed/hosts/members.h"
#include "torch_openreg/chapters/distributed/hosts/network.h"
#include "torch_openreg/common/bindings.h"

#include <pybind11/chrono.h>
#include <pybind11/functional.h>
#include <torch/csrc/utils/pybind.h>

namespace openreg {
namespace {

// [distributed.hosts.bindings] Python makes the engine, because PyTorch exports no other way to make one.
namespace py = pybind11;

const ChapterBindings hosts_bindings("distributed", [](py::module_& module) {
  module.def(
      "set_engine",
      [](const EngineFactory& factory) {
        setEngineFactory(factory);
        setCommunicatorFactory(&makeAcrossHosts);
      },
      "The function that makes an engine between hosts from a store, a rank, "
      "a number of ranks and a time limit.");
  module.def("end_searches", &Members::endAll);
});

// [-]
}  // namespace
}  // namespace openreg
