// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/operators/fallback_policy.h"

#include <cstdlib>
#include <optional>

namespace openreg {
namespace {

// [operators.policy.names] Three words, in the environment and in a program.
std::optional<FallbackPolicy> policyOf(const std::string& text) {
  if (text == "silent") return FallbackPolicy::silent;
  if (text == "warn") return FallbackPolicy::warn;
  if (text == "error") return FallbackPolicy::error;
  return std::nullopt;
}

FallbackPolicy policyOfProcess() {
  static const FallbackPolicy policy = [] {
    const char* variable = std::getenv("OPENREG_FALLBACK");
    const std::string text = variable && *variable ? variable : "silent";
    const auto policy = policyOf(text);
    TORCH_CHECK_VALUE(policy, "OPENREG_FALLBACK=", text,
                      " is not allowed; it must be silent, warn or error.");
    return *policy;
  }();
  return policy;
}

// [operators.policy.slot] PyTorch carries this slot of a thread to the threads of its backward pass.
constexpr std::string_view kSlotName = "openreg fallback";
const c10::DebugInfoKind kSlot(&kSlotName);

struct Chosen final : c10::DebugInfoBase {
  explicit Chosen(FallbackPolicy policy) : policy(policy) {}
  FallbackPolicy policy;
};

std::shared_ptr<Chosen> chosen(const std::string& text) {
  const auto policy = policyOf(text);
  TORCH_CHECK_VALUE(policy, "There is no fallback policy \"", text,
                    "\"; it must be \"silent\", \"warn\" or \"error\".");
  return std::make_shared<Chosen>(*policy);
}

// [-]
}  // namespace

// [operators.policy.scope] The innermost choice of the thread, or the process's.
FallbackPolicy fallbackPolicy() {
  const auto* chosen = c10::ThreadLocalDebugInfo::get(kSlot);
  return chosen ? static_cast<const Chosen*>(chosen)->policy
                : policyOfProcess();
}

FallbackScope::FallbackScope(const std::string& policy)
    : guard_(kSlot, chosen(policy)) {}

// [-]
}  // namespace openreg
