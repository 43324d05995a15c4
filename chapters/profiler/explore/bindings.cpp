// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/profiler/races/places.h"
#include "torch_openreg/common/bindings.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"

#include <pybind11/stl.h>

#include <cstdint>
#include <string>
#include <vector>

namespace openreg {
namespace {

// [profiler.explore.bindings] The steps are copied first, because Python may call the driver while it makes objects of them.
struct CopiedStep {
  std::string stream, name;
  int device;
  int64_t handle, place;
  std::string ready;
  std::vector<uint64_t> before;
  std::vector<size_t> conflicts;
};

std::vector<CopiedStep> copySteps() {
  std::vector<CopiedStep> all;
  check(orVisitSteps(
      [](const orStep* step, void* data) {
        static_cast<std::vector<CopiedStep>*>(data)->push_back(
            {step->stream,
             step->name,
             step->device,
             step->handle,
             step->place,
             step->ready,
             {step->before, step->before + step->streams},
             {step->conflicts, step->conflicts + step->conflict_count}});
      },
      &all));
  return all;
}

// [profiler.explore.bindings.list] A tuple for each step, of which Python makes its class.
pybind11::list listSteps() {
  pybind11::list list;
  for (const CopiedStep& step : copySteps()) {
    list.append(pybind11::make_tuple(step.stream, step.name, step.device,
                                     step.handle, lineOf(step.place),
                                     step.ready, step.before, step.conflicts));
  }
  return list;
}

const ChapterBindings step_bindings("profiler", [](pybind11::module_& m) {
  m.def("list_steps", &listSteps);
});

// [-]
}  // namespace
}  // namespace openreg
