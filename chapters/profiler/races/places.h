// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"

#include <string>
#include <utility>
#include <vector>

namespace openreg {

// [profiler.races.places] A report names lines of the program, not those of PyTorch's own files.
/// From now on the driver learns the innermost line outside of files whose
/// names begin with one of `skipped`.
void startPlaces(std::vector<std::string> skipped);
/// Before Python ends.
void stopPlaces();
/// The line that the driver knows by this number, such as "train.py:12"; empty
/// if there is none. May be called by what the driver visits.
std::string lineOf(int64_t place);

/// From now on operators on the host announce the pinned memory that they
/// touch.
void startHostAccesses();
/// No longer.
void stopHostAccesses();

// [profiler.races.visit] What the driver shows is copied first, because Python may call the driver while it makes objects.
/// The values that `copy` makes of what `visit` shows.
template <class Item, class Copy>
auto copyAll(orError_t (*visit)(void (*)(const Item*, void*), void*), Copy) {
  std::vector<decltype(Copy()(std::declval<const Item&>()))> all;
  check(visit(
      [](const Item* item, void* data) {
        static_cast<decltype(all)*>(data)->push_back(Copy()(*item));
      },
      &all));
  return all;
}

// [-]
}  // namespace openreg
