// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace openreg {

// [hooks.ours] PyTorch keeps one hooks object, that of the backend which registers first.
/// Whether the hooks that PyTorch asks are ours. If not, this backend is
/// unusable.
bool hooksAreOurs();

// [-]
}  // namespace openreg
