// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace openreg {

// [operators.fallback] Operators without a kernel run on the CPU, and are counted.
/// How often each operator fell back to the CPU since the last reset.
std::map<std::string, uint64_t> fallbackReport();

/// Sets all counts to zero; each operator is warned about once more.
void resetFallbackReport();

/// Counts a call of operator `name` that runs on the CPU, and warns if the
/// policy says so. For kernels that compute on the CPU by themselves.
/// @throws c10::NotImplementedError if the policy forbids the fallback.
void countFallback(const std::string& name);

/// A boxed kernel for our key: copies the arguments to the CPU, runs `op` there
/// and copies the results back. Counts the call, and warns if the policy says
/// so.
/// @throws c10::NotImplementedError if the policy forbids the fallback, or if
/// `fallbackRefusal` has a reason against it.
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack);

/// Runs `op` on the CPU with a `copy` of each tensor among its arguments, which
/// are on the stack; neither counts nor refuses. Assigns what it wrote to the
/// tensors themselves, and moves other results to their device.
void runOnCopies(const c10::OperatorHandle& op, torch::jit::Stack* stack,
                 std::function<at::Tensor(const at::Tensor&)> copy);

/// Applies the policy to a call of `op` that will run on the CPU, and counts
/// it.
/// @throws as `fallback`.
void admitFallback(const c10::OperatorHandle& op);

/// Why `op` must not run on the CPU, and what to do instead; empty if it may.
/// The answer depends only on its schema, tags and name.
std::string fallbackRefusal(const c10::OperatorHandle& op);

// [-]
}  // namespace openreg
