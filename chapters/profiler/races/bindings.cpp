// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/profiler/races/places.h"
#include "torch_openreg/common/bindings.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"

#include <pybind11/stl.h>

#include <array>
#include <cstdint>

namespace openreg {
namespace {

// [profiler.races.bindings] The races are copied first, because Python may call the driver while it makes objects of them.
struct CopiedRace {
  std::array<orRaceSide, 2> sides;
  std::array<std::string, 2> names;
  uintptr_t block;
  size_t block_bytes;
  bool was_reused;
  std::string sentence;
};

std::vector<CopiedRace> copyRaces() {
  std::vector<CopiedRace> all;
  check(orVisitRaces(
      [](const orRace* race, void* data) {
        static_cast<std::vector<CopiedRace>*>(data)->push_back(
            {{race->first, race->second},
             {race->first.name, race->second.name},
             reinterpret_cast<uintptr_t>(race->block),
             race->block_bytes,
             race->was_reused != 0,
             race->sentence});
      },
      &all));
  return all;
}

// [profiler.races.bindings.list] A tuple for each race, of which Python makes its classes.
pybind11::tuple sideOf(const CopiedRace& race, size_t i) {
  const orRaceSide& side = race.sides[i];
  return pybind11::make_tuple(race.names[i], side.device, side.stream,
                              side.is_write != 0,
                              reinterpret_cast<uintptr_t>(side.pointer),
                              side.bytes, lineOf(side.place));
}

pybind11::list listRaces() {
  pybind11::list list;
  for (const CopiedRace& race : copyRaces()) {
    list.append(pybind11::make_tuple(sideOf(race, 0), sideOf(race, 1),
                                     race.block, race.block_bytes,
                                     race.was_reused, race.sentence));
  }
  return list;
}

// [profiler.races.bindings.violations] Violations come the same way.
struct CopiedViolation {
  orViolation fields;
  std::string name, sentence;
};

pybind11::list listViolations() {
  std::vector<CopiedViolation> all;
  check(orVisitViolations(
      [](const orViolation* each, void* data) {
        static_cast<std::vector<CopiedViolation>*>(data)->push_back(
            {*each, each->name, each->sentence});
      },
      &all));
  pybind11::list list;
  for (const auto& [each, name, sentence] : all) {
    list.append(pybind11::make_tuple(
        name, each.device, each.stream, each.is_write != 0,
        reinterpret_cast<uintptr_t>(each.pointer),
        reinterpret_cast<uintptr_t>(each.block), each.block_bytes,
        each.was_freed != 0, lineOf(each.place), lineOf(each.allocated_at),
        lineOf(each.freed_at), sentence));
  }
  return list;
}

// [profiler.races.bindings.names] A search for races always comes with the lines of the program and the accesses of the host.
const ChapterBindings race_bindings("profiler", [](pybind11::module_& m) {
  m.def("start_races", [](std::vector<std::string> skipped) {
    check(orFindRaces(1));
    startPlaces(std::move(skipped));
    startHostAccesses();
  });
  m.def("start_places", &startPlaces);
  m.def("start_accesses", [](std::vector<std::string> skipped) {
    startPlaces(std::move(skipped));
    startHostAccesses();
  });
  m.def("stop_races", [](bool keeps_places) {
    check(orFindRaces(0));
    stopHostAccesses();
    if (!keeps_places) stopPlaces();
  });
  m.def("leave_races", [] {
    stopHostAccesses();
    stopPlaces();
  });
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
