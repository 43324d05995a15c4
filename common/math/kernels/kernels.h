// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace openreg {

// [common.cpu-kernel] PyTorch announces for our device what a GPU's kernels return, but some CPU kernels keep other intermediate results.
/// Calls the CPU's kernel of `op` with CPU tensors on `stack`. Intermediate
/// results are those of our device, where the kernel has others.
void callCpuKernel(const c10::OperatorHandle& op, torch::jit::Stack& stack);

/// Checks the indices that the kernel would trust.
/// @throws c10::Error if one is out of bounds.
void checkTrusted(const c10::OperatorHandle& op, torch::jit::Stack& arguments);
/// The same of the targets of a loss: classes of `self`, or `ignored`.
void checkTargets(const at::Tensor& self, const at::Tensor& target,
                  int64_t ignored);
/// Checks that the summand of a product of these sizes expands to them.
/// @throws c10::Error in PyTorch's words if it does not.
void checkSummand(const at::Tensor& summand, at::IntArrayRef sizes);

// [common.corrected] Every kernel of PyTorch's that runs on the device is called here, so one table can replace those that compute wrong numbers.
/// Calls the kernel of `op` with CPU tensors on `stack`: ours if the table of
/// corrections has one, and else the CPU's.
void callCorrected(const c10::OperatorHandle& op, torch::jit::Stack& stack);

/// Whether that is a kernel of ours.
bool isCorrected(const c10::OperatorHandle& op);

/// The argument on `stack` that the schema of `op` calls `name`; it must have
/// one.
inline c10::IValue& argumentNamed(const char* name,
                                  const c10::OperatorHandle& op,
                                  torch::jit::Stack& stack) {
  return stack[*op.schema().argumentIndexWithName(name)];
}

// [-]
}  // namespace openreg
