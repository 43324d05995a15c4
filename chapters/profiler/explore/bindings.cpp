// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/profiler/races/places.h"
#include "torch_openreg/common/bindings.h"

#include <pybind11/stl.h>

#include <cstdint>
#include <tuple>

namespace openreg {

// [profiler.explore.bindings] A tuple for each step, of which Python makes its class.
static auto listSteps() {
  return copyAll(&orVisitSteps, [](const orStep& step) {
    return std::tuple(
        std::string(step.stream), std::string(step.name), step.device,
        step.handle, lineOf(step.place), std::string(step.ready),
        std::vector<uint64_t>(step.before, step.before + step.streams),
        std::vector<size_t>(step.conflicts,
                            step.conflicts + step.conflict_count));
  });
}

static const ChapterBindings step_bindings("profiler",
                                           [](pybind11::module_& m) {
                                             m.def("list_steps", &listSteps);
                                           });

// [-]
}  // namespace openreg
