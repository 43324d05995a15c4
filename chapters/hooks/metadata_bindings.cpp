// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/hooks/metadata.h"
#include "common/bindings.h"

#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

namespace openreg {

// [hooks.metadata.bindings] A Python set of strings, there and back.
static const ChapterBindings bindings("hooks", [](pybind11::module_& module) {
  module.def("labels", &labelsOf);
  module.def("set_labels", &setLabels);
});

// [-]
}  // namespace openreg
