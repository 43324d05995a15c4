// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "openreg.h"

#include <sstream>
#include <string>

namespace openreg::hardware {

// [common.error] A failure is a code and a sentence, kept for the thread that met it.
/// Remembers the failure for `orGetLastError` and `orGetErrorDetail`.
orError_t remember(orError_t error, std::string detail);

/// Remembers a failure whose sentence is put together from `parts`.
template <class... Parts>
orError_t fail(orError_t error, const Parts&... parts) {
  std::ostringstream detail;
  (detail << ... << parts);
  return remember(error, detail.str());
}

// [common.error.entry] What every call checks before it does anything.
/// Refuses calls in a forked child and under a wrong configuration; starts the
/// devices otherwise.
orError_t enter();

// [-]
}  // namespace openreg::hardware
