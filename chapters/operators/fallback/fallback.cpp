// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/fallback/fallback.h"
#include "torch_openreg/chapters/operators/fallback/fallback_policy.h"
#include "torch_openreg/common/tensors.h"

#include <ATen/native/CPUFallback.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <mutex>
#include <set>
#include <unordered_map>

namespace openreg {
namespace {

// [operators.fallback.counts] How often each operator fell back, and which ones a warning has named.
std::mutex mutex;
std::map<std::string, uint64_t> counts;
std::set<std::string> warned;

/// Counts `name`; returns whether the policy asks for a warning now.
bool addToReport(const std::string& name, FallbackPolicy policy) {
  std::lock_guard lock(mutex);
  ++counts[name];
  return policy == FallbackPolicy::warn && warned.insert(name).second;
}

// [operators.fallback.shared] PyTorch's fallback copies each argument separately, so arguments that share memory would no longer share it.
/// Whether `op` writes an argument that has its storage in common with another.
bool sharesWritten(const c10::OperatorHandle& op,
                   c10::ArrayRef<c10::IValue> arguments) {
  std::unordered_map<const void*, int> uses;
  for (const at::Tensor& tensor : tensorsOf(arguments))
    ++uses[tensor.storage().unsafeGetStorageImpl()];
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto* alias = op.schema().arguments()[i].alias_info();
    if (!alias || !alias->isWrite()) continue;
    for (const at::Tensor& tensor : tensorsOf({arguments[i]}))
      if (uses[tensor.storage().unsafeGetStorageImpl()] > 1) return true;
  }
  return false;
}

// [operators.fallback.twins] If arguments share memory, we copy whole storages, so that they share memory on the CPU too.
void runOnTwins(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  struct Memory {
    at::Tensor here, on_cpu;
  };
  std::unordered_map<const void*, Memory> memory;
  std::vector<std::pair<at::Tensor, at::Tensor>> twins;
  const auto twinOf = [&](const at::Tensor& tensor) {
    auto& [here, on_cpu] = memory[tensor.storage().unsafeGetStorageImpl()];
    if (!here.defined()) {
      here = at::empty({0}, tensor.options().dtype(at::kByte))
                 .set_(tensor.storage());
      on_cpu = here.cpu();
    }
    at::Tensor twin = at::empty({0}, on_cpu.options().dtype(tensor.dtype()));
    twin.set_(on_cpu.storage(), tensor.storage_offset(), tensor.sizes(),
              tensor.strides());
    return twins.emplace_back(twin, tensor).first;
  };
  for (const auto& value :
       torch::jit::pop(*stack, op.schema().arguments().size()))
    stack->push_back(mapTensors(value, twinOf));
  op.callBoxed(*stack);
  c10::Device device = at::kCPU;
  for (auto& [storage, bytes] : memory) {
    bytes.here.copy_(bytes.on_cpu, /*non_blocking=*/true);
    if (!bytes.here.is_cpu()) device = bytes.here.device();
  }
  for (size_t i = 0; i < op.schema().returns().size(); ++i) {
    c10::IValue& result =
        torch::jit::peek(*stack, i, op.schema().returns().size());
    result = mapTensors(result, [&](const at::Tensor& tensor) {
      for (const auto& [twin, original] : twins)
        if (tensor.is_same(twin)) return original;
      return tensor.to(device, tensor.scalar_type(), /*non_blocking=*/true);
    });
  }
}

// [-]
}  // namespace

// [operators.fallback.count] The policy may forbid the CPU, or ask for a warning, before anything is copied.
void countFallback(const std::string& name) {
  const FallbackPolicy policy = fallbackPolicy();
  TORCH_CHECK_NOT_IMPLEMENTED(
      policy != FallbackPolicy::error, name,
      " has no openreg kernel, and the fallback policy \"error\" forbids the "
      "CPU's; \"warn\" and \"silent\" allow it, in OPENREG_FALLBACK or "
      "torch.openreg.fallback.");
  if (addToReport(name, policy)) {
    TORCH_WARN(
        name, " has no openreg kernel and runs on the CPU; this is said once.");
  }
}

// [operators.fallback.admit] An operator that must not run on the CPU is refused, and not counted.
void admitFallback(const c10::OperatorHandle& op) {
  const std::string name = c10::toString(op.operator_name());
  const std::string reason = fallbackRefusal(op);
  TORCH_CHECK_NOT_IMPLEMENTED(
      reason.empty(), name,
      " has no openreg kernel, and must not run on the CPU: ", reason, ".");
  countFallback(name);
}

// [operators.fallback.run] PyTorch copies to the CPU, runs the kernel and copies back.
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  admitFallback(op);
  const size_t count = op.schema().arguments().size();
  if (sharesWritten(op, torch::jit::last(*stack, count)))
    return runOnTwins(op, stack);
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
