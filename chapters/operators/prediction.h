// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>

namespace openreg {

// [operators.prediction] What an operator will return, known before it has run.
/// `value` with every defined tensor in it, alone or in a list, replaced.
c10::IValue mapTensors(
    const c10::IValue& value,
    const std::function<at::Tensor(const at::Tensor&)>& change);

/// The results of `op` as meta tensors: sizes, strides and types without data.
/// Asked of PyTorch's Meta kernel once for all arguments that look the same.
/// @throws what PyTorch throws for arguments that do not fit each other.
torch::jit::Stack predict(const c10::OperatorHandle& op,
                          const torch::jit::Stack& arguments);

// [-]
}  // namespace openreg
