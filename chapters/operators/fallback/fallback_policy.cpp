// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/fallback/fallback.h"

#include <atomic>
#include <cstdlib>
#include <optional>

namespace openreg {
// [operators.policy.names] The environment variable and the Python function take the same three words.
static std::optional<FallbackPolicy> policyOf(const std::string& text) {
  if (text == "silent") return FallbackPolicy::silent;
  if (text == "warn") return FallbackPolicy::warn;
  if (text == "error") return FallbackPolicy::error;
  return std::nullopt;
}

static FallbackPolicy readPolicy() {
  const char* variable = std::getenv("OPENREG_FALLBACK");
  const std::string text = variable && *variable ? variable : "silent";
  const auto policy = policyOf(text);
  TORCH_CHECK_VALUE(policy, "OPENREG_FALLBACK=", text,
                    " is not allowed; it must be silent, warn or error.");
  return *policy;
}

static FallbackPolicy policyOfProcess() {
  static const FallbackPolicy policy = readPolicy();
  return policy;
}

// [operators.policy.slot] PyTorch hands this slot of a thread on to the threads of its backward passes.
constexpr std::string_view kSlotName = "openreg fallback";
static const c10::DebugInfoKind kSlot(&kSlotName);

// [operators.policy.check] The import checks the variable, because a program may never fall back.
void checkFallbackPolicy() { readPolicy(); }

// [operators.policy.choice] The slot owns the policy of a scope, and through it those of the enclosing scopes.
struct FallbackScope::Choice final : c10::DebugInfoBase {
  FallbackPolicy policy;
  const Choice* outer;
  std::atomic<bool> over{false};

  static const Choice* innermost() {
    return static_cast<const Choice*>(c10::ThreadLocalDebugInfo::get(kSlot));
  }
};

// [operators.policy.scope] The innermost scope that has not ended decides; without one, the process-wide policy does.
FallbackPolicy fallbackPolicy() {
  const auto* choice = FallbackScope::Choice::innermost();
  while (choice && choice->over) choice = choice->outer;
  return choice ? choice->policy : policyOfProcess();
}

FallbackScope::FallbackScope(const std::string& text)
    : choice_(std::make_shared<Choice>()) {
  const auto policy = policyOf(text);
  TORCH_CHECK_VALUE(policy, "There is no fallback policy \"", text,
                    "\"; it must be \"silent\", \"warn\" or \"error\".");
  choice_->policy = *policy;
  choice_->outer = Choice::innermost();
  guard_ = std::make_unique<c10::DebugInfoGuard>(kSlot, choice_);
}

/// The guard would restore the slot to what it was before this scope. If a
/// scope that began later is still open, the slot belongs to that one and
/// stays.
FallbackScope::~FallbackScope() {
  choice_->over = true;
  if (Choice::innermost() != choice_.get()) guard_.release();
}

// [-]
}  // namespace openreg
