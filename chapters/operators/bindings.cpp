// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/fallback/fallback.h"
#include "torch_openreg/common/bindings.h"

#include <pybind11/stl.h>

namespace openreg {

// [operators.bindings] Python reads the fallback's counts and sets its policy.
static const ChapterBindings operators_bindings(
    "operators", [](pybind11::module_& module) {
      module.def("fallback_report", &fallbackReport, Guarded());
      module.def("reset_fallback_report", &resetFallbackReport, Guarded());
      module.def("check_fallback_policy", &checkFallbackPolicy);
      pybind11::class_<FallbackScope>(module, "FallbackScope")
          .def(pybind11::init<const std::string&>());
      module.def("fallback_refusal", [](const std::string& name,
                                        const std::string& overload) {
        return fallbackRefusal(c10::Dispatcher::singleton().findSchemaOrThrow(
            name.c_str(), overload.c_str()));
      });
    });

// [-]
}  // namespace openreg
