// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace openreg {

// [operators.prediction] What an operator will return, known before it has run.
/// The results of `op` as meta tensors: sizes, strides and types without data.
/// Asked of PyTorch's Meta kernel once for all arguments that look the same.
/// @throws what PyTorch throws for arguments that do not fit each other.
torch::jit::Stack predict(const c10::OperatorHandle& op,
                          const torch::jit::Stack& arguments);

// [-]
}  // namespace openreg
