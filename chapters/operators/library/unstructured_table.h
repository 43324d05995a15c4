// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <vector>

namespace openreg {

// [operators.unstructured.table] The host learns an output's size in one of three ways.
/// Where the host learns the sizes of an operator's results.
enum class SizeSource {
  meta,       ///< PyTorch's Meta kernel, before the launch
  arguments,  ///< the operator returns only arguments that it was given
  result,     ///< the computed result, for which the host waits
};

/// Follows from the schema of the operator, its tags and its kernels.
SizeSource sizeSource(const c10::OperatorHandle& op);

/// The operators that are not structured and have a CPU kernel but none of
/// ours. Call this when all other kernels are registered.
std::vector<c10::OperatorHandle> unstructured();

// [-]
}  // namespace openreg
