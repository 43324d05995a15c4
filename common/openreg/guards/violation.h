// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/interface/openreg_tools.h"

#include <string>

namespace openreg::hardware {

// [common.guards.violation] A violation is a finding with one command.
/// What a command did; `is_certain` if no other command can have done it.
std::string sentenceFor(const orFinding& found, bool is_certain);
/// What was found when a block was freed.
std::string sentenceAtFree(const orFinding& found);
/// Adds it to the findings, and prints it.
void addViolation(orFinding found, const std::string& sentence);

// [-]
}  // namespace openreg::hardware
