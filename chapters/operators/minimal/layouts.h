// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace openreg {

// [operators.layouts.first] Before an argument can be a tensor of the device, a factory of strided tensors has made one.
/// Registers a fallback for each layout that this backend does not have.
bool registerLayoutRefusals();

/// The same, at the first call. Every factory of strided tensors calls this
/// before it makes one.
inline void refuseOtherLayouts() {
  [[maybe_unused]] static const bool registered = registerLayoutRefusals();
}

// [-]
}  // namespace openreg
