// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"

#include <ostream>

/// GoogleTest prints the names of codes, so a failed claim says
/// orErrorInvalidValue and not 1.
inline void PrintTo(orError_t error, std::ostream* out) {
  *out << orGetErrorName(error);
}
