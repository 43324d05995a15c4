// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/operators/fallback.h"

#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <cstdlib>
#include <mutex>

namespace openreg {
namespace {

// [operators.fallback.state] The books, and what OPENREG_FALLBACK says about falling back.
enum class Policy { silent, warn, error };

Policy policy() {
  static const Policy policy = [] {
    const char* variable = std::getenv("OPENREG_FALLBACK");
    const std::string text = variable && *variable ? variable : "silent";
    TORCH_CHECK_VALUE(text == "silent" || text == "warn" || text == "error",
                      "OPENREG_FALLBACK=", text,
                      " is not allowed; it must be silent, warn or error.");
    return text == "silent" ? Policy::silent
           : text == "warn" ? Policy::warn
                            : Policy::error;
  }();
  return policy;
}

std::mutex mutex;
std::map<std::string, uint64_t> counts;

// [operators.fallback.run] Copy to the CPU, run there, copy back; and write it down.
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string name = c10::toString(op.operator_name());
  TORCH_CHECK_NOT_IMPLEMENTED(
      policy() != Policy::error, name,
      " has no openreg kernel, and OPENREG_FALLBACK=error forbids the CPU's.");
  uint64_t times;
  {
    std::lock_guard lock(mutex);
    times = ++counts[name];
  }
  if (times == 1 && policy() == Policy::warn) {
    TORCH_WARN(
        name, " has no openreg kernel and runs on the CPU; this is said once.");
  }
  // A view that fell back would be a copy, and writes to it would be lost:
  // refuse instead.
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}

// [-]
}  // namespace

// [operators.fallback.report] The books are open.
std::map<std::string, uint64_t> fallbackReport() {
  std::lock_guard lock(mutex);
  return counts;
}

void resetFallbackReport() {
  std::lock_guard lock(mutex);
  counts.clear();
}

// [operators.fallback.register] For every operator of every library that has no kernel of ours.
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

// [-]
}  // namespace openreg
