// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/compile/replays/results.h"
#include "torch_openreg/common/bindings.h"

#include <torch/csrc/utils/pybind.h>

namespace openreg {

// [compile.replays.bindings] A replayed program holds its results in C++, because it lends all of them at each call.
static const ChapterBindings replays_bindings(
    "compile", [](pybind11::module_& module) {
      pybind11::class_<Results>(module, "Results")
          .def(pybind11::init<const std::vector<at::Tensor>&>())
          .def("are_in_use", &Results::areInUse)
          .def("lend", &Results::lend)
          .def("wait_for_readers", &Results::waitForReaders);
    });

// [-]
}  // namespace openreg
