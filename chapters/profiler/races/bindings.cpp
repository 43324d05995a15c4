// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/profiler/races/places.h"
#include "torch_openreg/common/bindings.h"

#include <pybind11/stl.h>

#include <cstdint>
#include <tuple>

namespace openreg {
namespace {

// [profiler.races.bindings] A tuple for each finding, of which Python makes its classes.
uintptr_t numberOf(const void* address) {
  return reinterpret_cast<uintptr_t>(address);
}

auto commandOf(const orFoundCommand& command) {
  return std::tuple(std::string(command.name), command.device, command.stream,
                    command.is_write != 0, numberOf(command.pointer),
                    command.bytes, lineOf(command.place));
}

auto listFindings() {
  return copyAll(&orVisitFindings, [](const orFinding& each) {
    return std::tuple(
        each.is_race != 0, commandOf(each.other), commandOf(each.command),
        std::tuple(numberOf(each.block), each.block_bytes, each.was_freed != 0),
        std::tuple(lineOf(each.allocated_at), lineOf(each.freed_at)),
        std::string(each.sentence));
  });
}

// [profiler.races.bindings.names] What is searched for, and what a report needs, are switched apart.
const ChapterBindings race_bindings("profiler", [](pybind11::module_& m) {
  m.def("find_races", [](bool is_on) { check(orFindRaces(is_on)); });
  m.def("start_places", &startPlaces);
  m.def("stop_places", &stopPlaces);
  m.def("start_host_accesses", &startHostAccesses);
  m.def("stop_host_accesses", &stopHostAccesses);
  m.def("list_findings", &listFindings);
  m.def("clear_found", [] { check(orClearFindings()); });
});

// [-]
}  // namespace
}  // namespace openreg
