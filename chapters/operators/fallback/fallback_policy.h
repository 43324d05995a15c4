// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>

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

// [-]
}  // namespace openreg
