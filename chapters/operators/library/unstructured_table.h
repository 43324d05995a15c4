// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <vector>

namespace openreg {

// [operators.unstructured.table] The library's operators from which PyTorch derives nothing.
/// When the host learns the size of what an operator returns.
enum class Size {
  first,  ///< before the launch, from PyTorch's Meta kernel
  given,  ///< it returns only what it was given
  last,   ///< from the result: the host waits
};

Size sizeOf(const c10::OperatorHandle& op);

/// Those that have a CPU kernel and none of ours. To be asked when all kernels
/// written by hand are registered.
std::vector<c10::OperatorHandle> unstructured();

// [-]
}  // namespace openreg
