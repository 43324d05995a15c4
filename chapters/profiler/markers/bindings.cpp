// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/bindings.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"

namespace openreg {

// [profiler.markers.bindings] A range belongs to the thread that pushes it, so Python's lock is kept.
static const ChapterBindings marker_bindings(
    "profiler", [](pybind11::module_& m) {
      m.def("range_push", [](const char* name) { check(orRangePush(name)); });
      m.def("range_pop", [] { check(orRangePop()); });
    });

// [-]
}  // namespace openreg
