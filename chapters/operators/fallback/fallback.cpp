// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/fallback/fallback.h"
#include "torch_openreg/chapters/operators/fallback/fallback_policy.h"

#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <mutex>
#include <set>

namespace openreg {
namespace {

// [operators.fallback.counts] How often each operator fell back, and which ones a warning has named.
std::mutex mutex;
std::map<std::string, uint64_t> counts;
std::set<std::string> warned;

/// Counts `name`; returns whether the policy asks for a warning now.
bool countFallback(const std::string& name, FallbackPolicy policy) {
  std::lock_guard lock(mutex);
  ++counts[name];
  return policy == FallbackPolicy::warn && warned.insert(name).second;
}

// [-]
}  // namespace

// [operators.fallback.run] We apply the policy and count; PyTorch copies to the CPU, runs the kernel and copies back.
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string name = c10::toString(op.operator_name());
  const std::string reason = fallbackRefusal(op);
  TORCH_CHECK_NOT_IMPLEMENTED(
      reason.empty(), name,
      " has no openreg kernel, and must not run on the CPU: ", reason, ".");
  const FallbackPolicy policy = fallbackPolicy();
  TORCH_CHECK_NOT_IMPLEMENTED(
      policy != FallbackPolicy::error, name,
      " has no openreg kernel, and the fallback policy \"error\" forbids the "
      "CPU's; \"warn\" and \"silent\" allow it, in OPENREG_FALLBACK or "
      "torch.openreg.fallback.");
  if (countFallback(name, policy)) {
    TORCH_WARN(
        name, " has no openreg kernel and runs on the CPU; this is said once.");
  }
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}

// [operators.fallback.report] Reading takes the lock as well, because another thread may be falling back.
std::map<std::string, uint64_t> fallbackReport() {
  std::lock_guard lock(mutex);
  return counts;
}

void resetFallbackReport() {
  std::lock_guard lock(mutex);
  counts.clear();
  warned.clear();
}

// [operators.fallback.register] The namespace `_` stands for every operator of every library that has no kernel at our key.
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

// [-]
}  // namespace openreg
