// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/operators/fallback.h"
#include "common/bindings.h"

#include <pybind11/stl.h>

namespace openreg {

// [operators.bindings] The books of the fallback.
static const ChapterBindings bindings(
    "operators", [](pybind11::module_& module) {
      module.def("fallback_report", &fallbackReport);
      module.def("reset_fallback_report", &resetFallbackReport);
    });

// [-]
}  // namespace openreg
