// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/fallback/fallback.h"
#include "torch_openreg/chapters/operators/launch/operands.h"
#include "torch_openreg/common/tensors.h"

#include <ATen/native/CPUFallback.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <mutex>
#include <set>
#include <unordered_map>

namespace openreg {
namespace {

// [operators.fallback.counts] How often each operator fell back, and which ones a warning has named.
struct Report {
  std::mutex mutex;
  std::map<std::string, uint64_t> counts;
  std::set<std::string> warned;
};
/// Never destroyed, because other threads run until the process ends.
Report& report = *new Report;

/// Counts `name`; returns whether the policy asks for a warning now.
bool addToReport(const std::string& name, FallbackPolicy policy) {
  std::lock_guard lock(report.mutex);
  ++report.counts[name];
  return policy == FallbackPolicy::warn && report.warned.insert(name).second;
}

// [operators.fallback.shared] PyTorch's fallback copies each argument separately, so arguments that share memory would no longer share it.
/// Whether `op` writes an argument that has its storage in common with another.
bool sharesWritten(const c10::OperatorHandle& op,
                   c10::ArrayRef<c10::IValue> arguments) {
  std::unordered_map<const void*, int> uses;
  for (const at::Tensor& tensor : tensorsOf(arguments))
    ++uses[tensor.storage().unsafeGetStorageImpl()];
  bool shares = false;
  forEachWritten(op, arguments, [&](const at::Tensor& tensor, size_t) {
    shares |= uses[tensor.storage().unsafeGetStorageImpl()] > 1;
  });
  return shares;
}

// [operators.fallback.sharing] Copies of tensors with a common storage have one in common, too.
/// A function for `runOnCopies`.
auto sharingCopies() {
  return [bytes_of = std::unordered_map<const void*, at::Tensor>()](
             const at::Tensor& tensor) mutable {
    at::Tensor& bytes = bytes_of[tensor.storage().unsafeGetStorageImpl()];
    if (!bytes.defined())
      bytes = at::empty({0}, tensor.options().dtype(at::kByte))
                  .set_(tensor.storage())
                  .cpu();
    return at::empty({0}, bytes.options().dtype(tensor.dtype()))
        .set_(bytes.storage(), tensor.storage_offset(), tensor.sizes(),
              tensor.strides());
  };
}

// [operators.fallback.outputs] An operator of PyTorch's writes on one device, as on CUDA; a custom operator may write on the host, too.
bool writesOnHost(const c10::OperatorHandle& op,
                  c10::ArrayRef<c10::IValue> arguments) {
  bool writes = false;
  forEachWritten(op, arguments, [&](const at::Tensor& written, size_t) {
    writes |= written.defined() && written.is_cpu();
  });
  return writes;
}

void checkOutputs(const c10::OperatorHandle& op,
                  c10::ArrayRef<c10::IValue> arguments) {
  const auto& formal = op.schema().arguments();
  const std::string& name = op.schema().name();
  if (!name.starts_with("aten::") ||
      !(formal.back().is_out() || writesOnHost(op, arguments)))
    return;
  CommonDevice device(name.c_str());
  for (const at::Tensor& tensor : tensorsOf(arguments)) device.add(tensor);
  forEachWritten(op, arguments, [&](const at::Tensor& written, size_t) {
    device.add(written, /*is_written=*/true);
  });
  device.index();
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

// [operators.fallback.assign] What the CPU has written goes back into the tensor that the program passed.
namespace {

/// Whether entries of `from` can be written where those of `to` are, which may
/// have aliases.
bool haveEqualEntries(const at::Tensor& to, const at::Tensor& from) {
  return to.is_sparse() && from.is_sparse() && to.sizes() == from.sizes() &&
         to.sparse_dim() == from.sparse_dim() && to._nnz() == from._nnz() &&
         to.is_coalesced() == from.is_coalesced() &&
         to.scalar_type() == from.scalar_type();
}

/// A sparse tensor takes the indices and sizes of `from` too.
void assign(const at::Tensor& to, const at::Tensor& from) {
  if (to.is_same(from)) return;  // on the host
  if (haveEqualEntries(to, from)) {
    to._indices().copy_(from._indices(), /*non_blocking=*/true);
    to._values().copy_(from._values(), /*non_blocking=*/true);
    return;
  }
  if (to.key_set().has(c10::DispatchKey::SparseCsrPrivateUse1)) {
    to.resize_as_sparse_(from.to(to.device()));
  } else if (!to.is_sparse() && !to.is_nested() && to.sizes() != from.sizes()) {
    to.resize_(from.sizes());
  }
  to.copy_(from, /*non_blocking=*/true);
}

/// The device of the first of these tensors that is not on the CPU.
c10::Device firstDeviceOf(c10::ArrayRef<c10::IValue> arguments) {
  for (const at::Tensor& tensor : tensorsOf(arguments))
    if (!tensor.is_cpu()) return tensor.device();
  return at::kCPU;
}

}  // namespace

// [operators.fallback.copies] Each tensor has one copy, which stands for it until the results are back.
void runOnCopies(const c10::OperatorHandle& op, torch::jit::Stack* stack,
                 std::function<at::Tensor(const at::Tensor&)> copy) {
  const auto arguments =
      torch::jit::pop(*stack, op.schema().arguments().size());
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;
  const auto copyOf = [&](const at::Tensor& tensor) {
    for (const auto& [original, copied] : copies)
      if (tensor.is_same(original)) return copied;
    return copies.emplace_back(tensor, copy(tensor)).second;
  };
  for (const c10::IValue& argument : arguments)
    stack->push_back(argument.isDevice() ? c10::Device(at::kCPU)
                                         : mapTensors(argument, copyOf));
  op.callBoxed(*stack);
  const c10::Device device = firstDeviceOf(arguments);
  const c10::DeviceGuard guard(device);
  forEachWritten(op, arguments, [&](const at::Tensor& written, size_t) {
    assign(written, copyOf(written));
  });
  const size_t results = op.schema().returns().size();
  for (size_t i = 0; i < results; ++i) {
    c10::IValue& result = torch::jit::peek(*stack, i, results);
    result = mapTensors(result, [&](const at::Tensor& tensor) {
      for (const auto& [original, copied] : copies)
        if (tensor.is_same(copied)) return original;
      return tensor.to(device, /*non_blocking=*/true);
    });
  }
}

// [operators.fallback.run] PyTorch copies to the CPU, runs the kernel and copies back.
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU),
      c10::toString(op.operator_name()),
      " has no openreg kernel, and the CPU has none either; register one for "
      "PrivateUse1.");
  const size_t count = op.schema().arguments().size();
  checkOutputs(op, torch::jit::last(*stack, count));
  admitFallback(op);
  if (sharesWritten(op, torch::jit::last(*stack, count)))
    return runOnCopies(op, stack, sharingCopies());
  if (writesOnHost(op, torch::jit::last(*stack, count)))
    return runOnCopies(op, stack, [](const auto& each) { return each.cpu(); });
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}

// [operators.fallback.report] Reading takes the lock as well, because another thread may be falling back.
std::map<std::string, uint64_t> fallbackReport() {
  std::lock_guard lock(report.mutex);
  return report.counts;
}

void resetFallbackReport() {
  std::lock_guard lock(report.mutex);
  report.counts.clear();
  report.warned.clear();
}

// [operators.fallback.register] The namespace `_` stands for every operator of every library that has no kernel at our key.
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

// [-]
}  // namespace openreg
