// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace openreg {

// [common.prediction] PyTorch's Meta kernel predicts what an operator will return.
/// The results of `op` as meta tensors: sizes, strides and dtypes without data.
/// They are cached by everything that the Meta kernel can see of the arguments.
/// @throws what PyTorch throws for arguments that do not fit each other.
torch::jit::Stack predict(const c10::OperatorHandle& op,
                          const torch::jit::Stack& arguments);

// [-]
}  // namespace openreg
