// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace openreg {

// [common.cpu-kernel] PyTorch announces for our device what a GPU's kernels return, but some CPU kernels keep other intermediate results.
/// Calls the CPU's kernel of `op` with CPU tensors on `stack`. Intermediate
/// results are those of our device, where the kernel has others.
void callCpuKernel(const c10::OperatorHandle& op, torch::jit::Stack& stack);

// [-]
}  // namespace openreg
