// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace openreg {

// [profiler.races.places] A report names lines of the program, not those of PyTorch's own files.
/// From now on the driver learns the innermost line outside of files whose
/// names begin with one of `skipped`.
void startPlaces(std::vector<std::string> skipped);
/// Before Python ends.
void stopPlaces();
/// The line that the driver knows by this number, such as "train.py:12"; empty
/// if there is none.
std::string lineOf(int64_t place);

/// From now on operators on the host announce the pinned memory that they
/// touch.
void startHostAccesses();
/// No longer.
void stopHostAccesses();

// [-]
}  // namespace openreg
