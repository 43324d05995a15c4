// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace openreg {

// [hooks.ours] PyTorch has one place for hooks, and the first to come has it.
/// Whether PyTorch asks ours; if not, nothing of this backend can be used.
bool hooksAreOurs();

// [-]
}  // namespace openreg
