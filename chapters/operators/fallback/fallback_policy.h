// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/util/ThreadLocalDebugInfo.h>

#include <memory>
#include <string>

namespace openreg {

// [operators.policy] What shall happen when an operator has no kernel of ours.
enum class FallbackPolicy { silent, warn, error };

/// The policy of the innermost scope on this thread; outside of all, what
/// OPENREG_FALLBACK says.
/// @throws c10::ValueError if it says something else than a policy.
FallbackPolicy fallbackPolicy();

/// Another policy for the thread that makes it, for as long as it lives. A
/// backward pass that begins meanwhile has it too, on whichever threads it
/// runs. Other threads keep theirs. Scopes of one thread may end in any order.
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
