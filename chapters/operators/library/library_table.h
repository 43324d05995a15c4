// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <source_location>
#include <unordered_set>
#include <vector>

namespace openreg {

// [operators.table] Which operators the library has: PyTorch's dispatcher knows.
/// The `.out` forms that have a CPU kernel and of which PyTorch derives the
/// functional and the in-place form, for every backend; and those forms.
struct Library {
  std::unordered_set<c10::OperatorHandle> with_out;
  std::vector<c10::OperatorHandle> derived;
};

/// Asked of the dispatcher once, when this backend is loaded.
const Library& library();

/// PyTorch's own operators, all of them.
const std::vector<c10::OperatorHandle>& atenOperators();

// [operators.table.implement] `m.impl` takes a name and parses it; whoever has the operator needs neither.
/// Registers `kernel` for `op` at our key, for good.
void implement(const c10::OperatorHandle& op, c10::KernelFunction kernel,
               std::source_location where = std::source_location::current());

// [-]
}  // namespace openreg
