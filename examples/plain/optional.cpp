// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/core/failure.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"

using namespace openreg::hardware;

// [plain.optional] Of the optional functions, one has an answer; all others are refused by name.
orError_t orInject(const char* order) noexcept {
  if (!order || !*order)
    return orSuccess;  // It cancels faults; there are none.
  return fail(orErrorNotSupported,
              "This driver does not have faults to inject.");
}

// [-]
