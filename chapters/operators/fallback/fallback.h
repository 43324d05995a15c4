// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace openreg {

// [operators.policy] The program chooses what happens when we do not have a kernel for an operator.
enum class FallbackPolicy { silent, warn, error };

/// @throws c10::ValueError if OPENREG_FALLBACK is not a policy.
void checkFallbackPolicy();

/// The policy of the innermost scope on this thread; without a scope, that of
/// OPENREG_FALLBACK.
/// @throws c10::ValueError if OPENREG_FALLBACK is not a policy.
FallbackPolicy fallbackPolicy();

/// Sets the policy of the calling thread for as long as the scope lives. A
/// backward pass that begins within the scope inherits the policy on all of its
/// threads. Other threads keep theirs. Scopes of one thread may end in any
/// order.
class FallbackScope {
 public:
  /// @throws c10::ValueError unless `policy` is silent, warn or error.
  explicit FallbackScope(const std::string& policy);
  ~FallbackScope();

 private:
  struct Choice;
  friend FallbackPolicy fallbackPolicy();

  std::shared_ptr<Choice> choice_;
  std::unique_ptr<c10::DebugInfoGuard> guard_;
};

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
/// @throws c10::NotImplementedError if the CPU has no kernel either, if the
/// policy forbids the fallback, or if `fallbackRefusal` has a reason against
/// it.
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
