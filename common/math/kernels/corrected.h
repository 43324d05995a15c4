// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace openreg {

// [common.corrected] Every kernel of PyTorch's that runs on the device is called here, so one table can replace those that compute wrong numbers.
/// Calls the kernel of `op` with CPU tensors on `stack`: ours if the table of
/// corrections has one, and else the CPU's.
void callCorrected(const c10::OperatorHandle& op, torch::jit::Stack& stack);

// [-]
}  // namespace openreg
