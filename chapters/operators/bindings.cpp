// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/backward_threads.h"
#include "torch_openreg/chapters/operators/fallback/fallback.h"
#include "torch_openreg/chapters/operators/fallback/fallback_policy.h"
#include "torch_openreg/chapters/operators/tools/trace.h"
#include "torch_openreg/common/bindings.h"
#include "torch_openreg/common/check.h"

#include <pybind11/stl.h>

namespace openreg {

// [operators.bindings] Python reads the fallback's counts and sets its policy.
static const ChapterBindings operators_bindings(
    "operators", [](pybind11::module_& module) {
      module.def("fallback_report", &fallbackReport,
                 pybind11::call_guard<NotForked>());
      module.def("reset_fallback_report", &resetFallbackReport,
                 pybind11::call_guard<NotForked>());
      module.def("check_fallback_policy", &checkFallbackPolicy);
      pybind11::class_<FallbackScope>(module, "FallbackScope")
          .def(pybind11::init<const std::string&>());
      module.def("fallback_refusal", [](const std::string& name,
                                        const std::string& overload) {
        return fallbackRefusal(c10::Dispatcher::singleton().findSchemaOrThrow(
            name.c_str(), overload.c_str()));
      });
    });

// [operators.bindings.end] The wait releases the GIL, because the backward threads need it.
static const ChapterBindings end_bindings(
    "operators", [](pybind11::module_& module) {
      module.def("wait_for_backward_threads", &waitForBackwardThreads,
                 pybind11::call_guard<pybind11::gil_scoped_release>());
    });

// [operators.bindings.trace] A trace counts calls by the program and calls by other operators separately.
static const ChapterBindings trace_bindings(
    "operators", [](pybind11::module_& module) {
      module.def("start_trace", &startTrace);
      module.def("stop_trace", [] {
        std::map<std::string, std::pair<uint64_t, uint64_t>> counts;
        for (const auto& [name, calls] : stopTrace()) {
          counts[name] = {calls.direct, calls.inner};
        }
        return counts;
      });
    });

// [-]
}  // namespace openreg
