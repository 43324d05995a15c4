// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>

namespace tiny {

// [first.fallback.count] Counting and refusing happen before anything is copied.
static std::mutex mutex;
static std::map<std::string, int64_t> counts;
static std::atomic<bool> allowed{true};

static void count(const c10::OperatorHandle& op) {
  const std::string name = c10::toString(op.operator_name());
  TORCH_CHECK_NOT_IMPLEMENTED(allowed, name, " has no kernel on tiny for these arguments, and ",
                              "torch.tiny.allow_fallback(False) forbids the CPU's.");
  std::lock_guard lock(mutex);
  ++counts[name];
}

// [first.fallback.run] PyTorch can run an operator on copies; all that we add is the count.
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  count(op);
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}

// [first.fallback.register] `_` stands for every operator that has no kernel under our key.
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

// [first.fallback.convolution] PyTorch gives foreign devices a convolution of their own, which the CPU lacks.
static void runAs(const char* name, torch::jit::Stack* stack) {
  at::native::cpu_fallback(c10::Dispatcher::singleton().findSchemaOrThrow(name, ""), stack);
}

static void convolution(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  count(op);
  runAs("aten::convolution", stack);
}

// [first.fallback.backward] The CPU's gradient takes one argument more, the size of the bias.
static void backward(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  count(op);
  const auto argument = [&](size_t i) { return torch::jit::peek(*stack, i, 10); };
  const at::Tensor weight = argument(2).toTensor();
  const bool transposed = argument(6).toBool();
  const int64_t size = transposed ? weight.size(1) * argument(8).toInt() : weight.size(0);
  stack->insert(stack->end() - 7, c10::List<int64_t>({size}));
  runAs("aten::convolution_backward", stack);
}

// [first.fallback.statistics] Batch norm writes to its running statistics; only its sibling's schema says so.
static void batchNorm(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  count(op);
  const c10::IValue& mean = torch::jit::peek(*stack, 3, 8);
  const bool writes = mean.isTensor() && mean.toTensor().defined();
  runAs(writes ? "aten::_native_batch_norm_legit" : "aten::native_batch_norm", stack);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  using Function = torch::CppFunction;
  m.impl("native_batch_norm", Function::makeFromBoxedFunction<&batchNorm>());
  m.impl("convolution_overrideable", Function::makeFromBoxedFunction<&convolution>());
  m.impl("convolution_backward_overrideable", Function::makeFromBoxedFunction<&backward>());
}

// [first.fallback.report] Operators of our own are the shortest bridge from Python to C++.
static c10::Dict<std::string, int64_t> report(bool reset) {
  c10::Dict<std::string, int64_t> copy;
  std::lock_guard lock(mutex);
  for (const auto& [name, count] : counts) copy.insert(name, count);
  if (reset) counts.clear();
  return copy;
}

TORCH_LIBRARY(tiny, m) {
  m.def("fallback_report(bool reset) -> Dict(str, int)", &report);
  m.def("allow_fallback(bool allow) -> ()", [](bool allow) { allowed = allow; });
}

// [-]
}  // namespace tiny
