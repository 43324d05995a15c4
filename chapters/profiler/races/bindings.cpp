// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/profiler/races/places.h"
#include "torch_openreg/common/bindings.h"

#include <pybind11/stl.h>

#include <cstdint>
#include <tuple>

namespace openreg {
namespace {

// [profiler.races.bindings] A tuple for each race, of which Python makes its classes.
uintptr_t numberOf(const void* address) {
  return reinterpret_cast<uintptr_t>(address);
}

auto sideOf(const orRaceSide& side) {
  return std::tuple(std::string(side.name), side.device, side.stream,
                    side.is_write != 0, numberOf(side.pointer), side.bytes,
                    lineOf(side.place));
}

auto listRaces() {
  return copyAll(&orVisitRaces, [](const orRace& race) {
    return std::tuple(sideOf(race.first), sideOf(race.second),
                      numberOf(race.block), race.block_bytes,
                      race.was_reused != 0, std::string(race.sentence));
  });
}

// [profiler.races.bindings.violations] Violations come the same way.
auto listViolations() {
  return copyAll(&orVisitViolations, [](const orViolation& each) {
    return std::tuple(
        std::string(each.name), each.device, each.stream, each.is_write != 0,
        numberOf(each.pointer), numberOf(each.block), each.block_bytes,
        each.was_freed != 0, lineOf(each.place), lineOf(each.allocated_at),
        lineOf(each.freed_at), std::string(each.sentence));
  });
}

// [profiler.races.bindings.names] What is searched for, and what a report needs, are switched apart.
const ChapterBindings race_bindings("profiler", [](pybind11::module_& m) {
  m.def("find_races", [](bool is_on) { check(orFindRaces(is_on)); });
  m.def("start_places", &startPlaces);
  m.def("stop_places", &stopPlaces);
  m.def("start_host_accesses", &startHostAccesses);
  m.def("stop_host_accesses", &stopHostAccesses);
  m.def("list_races", &listRaces);
  m.def("list_violations", &listViolations);
  m.def("clear_found", [] {
    check(orClearRaces());
    check(orClearViolations());
  });
});

// [-]
}  // namespace
}  // namespace openreg
