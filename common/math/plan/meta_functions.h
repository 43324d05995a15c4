// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace openreg::math {

// [common.meta-functions] Every structured operator has a C++ function that checks arguments and announces results.
/// PyTorch's own, which takes meta tensors; null if `op` is not structured. The
/// dispatcher would find a slow one in Python in its place, with other errors.
const c10::KernelFunction* metaFunction(const c10::OperatorHandle& op);

// [-]
}  // namespace openreg::math
