// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/distributed/process_group/process_group.h"
#include "torch_openreg/common/bindings.h"

#include <pybind11/chrono.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

namespace openreg {
namespace {

// [distributed.bindings.distributed] PyTorch can be built without torch.distributed, and then has no class to derive from.
namespace py = pybind11;
using Options = ProcessGroupOrccl::Options;

void checkDistributed() {
  if (py::hasattr(py::module_::import("torch._C"), "_c10d_init")) return;
  throw py::import_error(
      "this PyTorch was built without torch.distributed, which torch_openreg "
      "needs; install one that has it, or build torch_openreg with "
      "-Csetup-args=-Dchapter=compile");
}

// [distributed.bindings.options] PyTorch copies a group's options when it splits the group.
void bindOptions(py::handle group) {
  py::class_<Options, c10d::Backend::Options, c10::intrusive_ptr<Options>>(
      group, "Options",
      "The options of a group; its time limit is all of them.")
      .def(py::init([](std::chrono::milliseconds timeout) {
             return c10::make_intrusive<Options>(timeout);
           }),
           py::arg("timeout") = kBackendDefaultTimeout)
      .def("__copy__",
           [](const Options& self) {
             return c10::make_intrusive<Options>(self);
           })
      .def("__deepcopy__", [](const Options& self, const py::dict&) {
        return c10::make_intrusive<Options>(self);
      });
}

// [distributed.bindings] PyTorch's own class has all the collectives, so ours adds the constructor and what splitting asks for.
const ChapterBindings process_group_bindings(
    "distributed", [](py::module_& module) {
      checkDistributed();
      py::class_<ProcessGroupOrccl, c10d::Backend,
                 c10::intrusive_ptr<ProcessGroupOrccl>>
          group(
              module, "ProcessGroupOrccl",
              "The collectives of torch.distributed between openreg devices.");
      bindOptions(group);
      group
          .def(py::init([](const c10::intrusive_ptr<c10d::Store>& store,
                           int rank, int size, const Options& options) {
                 return c10::make_intrusive<ProcessGroupOrccl>(store, rank,
                                                               size, options);
               }),
               py::arg("store"), py::arg("rank"), py::arg("size"),
               py::arg("options") = Options(), Waits())
          .def_property_readonly(
              "options",
              [](ProcessGroupOrccl& self) {
                return c10::static_intrusive_pointer_cast<Options>(
                    self.getBackendOptions());
              })
          .def("get_error", &ProcessGroupOrccl::getError)
          // Ranks outside of a new group have nothing to do here.
          .def("perform_nocolor_split",
               [](const ProcessGroupOrccl&, const at::Device&) {});
      module.def("end_all_groups", &endAllGroups);
    });

// [-]
}  // namespace
}  // namespace openreg
