// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <map>
#include <string>
#include <vector>

namespace openreg {

// [operators.table] Which operators the library has: PyTorch's dispatcher knows.
/// The `.out` forms that have a CPU kernel and of which PyTorch derives the
/// functional and the in-place form, for every backend; and those forms.
struct Library {
  std::vector<c10::OperatorHandle> with_out;
  std::vector<c10::OperatorHandle> derived;
  /// The functional form, by the signature of either.
  std::map<std::string, c10::OperatorHandle> functional;
};

/// Asked of the dispatcher once, when this backend is loaded.
const Library& library();

/// The functional form of an `.out` form of the library.
c10::OperatorHandle functionalOf(const c10::OperatorHandle& with_out);

// [-]
}  // namespace openreg
