// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <source_location>
#include <unordered_map>
#include <vector>

namespace openreg {

// [operators.table] The dispatcher, not a list of names, decides which operators are in the library.
/// The `.out` forms that have a CPU kernel but no kernel of ours, from which
/// PyTorch derives the functional and in-place forms; and these derived forms.
/// Each `.out` form has its functional form beside it, if there is one.
struct Library {
  /// From an `.out` form to its functional form.
  std::unordered_map<c10::OperatorHandle, std::optional<c10::OperatorHandle>>
      with_out;
  std::vector<c10::OperatorHandle> derived;  ///< functional and in-place forms
};

/// Read from the dispatcher at the first call, while this backend is loaded.
const Library& library();

/// All operators of the namespace `aten`.
const std::vector<c10::OperatorHandle>& atenOperators();

// [operators.table.functional] A result has the strides that the functional form announces, whether or not the user passes an output.
/// The functional form of an `.out` form; empty if there is none that has a
/// Meta kernel.
std::optional<c10::OperatorHandle> functionalOf(
    const c10::OperatorHandle& with_out);

// [operators.table.implement] An operator handle is registered directly, because `m.impl` would parse its name.
/// Registers `kernel` for `op` at our key, or at `key`, until the process ends.
void implement(const c10::OperatorHandle& op, c10::KernelFunction kernel,
               c10::DispatchKey key = c10::DispatchKey::PrivateUse1,
               std::source_location where = std::source_location::current());

// [operators.table.refuses] The host waits for a kernel that may refuse the numbers that it is given.
/// Whether the CPU's kernel reports a numerical failure, such as a singular
/// matrix, or reads the deterministic mode to refuse. The host throws such an
/// error itself, as on the CPU, and the device does not stop.
bool mayRefuse(const c10::OperatorHandle& op);

// [-]
}  // namespace openreg
