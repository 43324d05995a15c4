// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/openreg/races/races.h"

#include <string>

namespace openreg::hardware {

// [common.races.words-of] A report names both commands and the edge that is missing between them.
/// What is missing, and how to add it.
std::string sentenceFor(const Race& race);
/// Prints the report to stderr.
void print(const Race& race);

/// The default stream, null before it is first used.
orStream_t defaultOf(const Device& device);

// [-]
}  // namespace openreg::hardware
