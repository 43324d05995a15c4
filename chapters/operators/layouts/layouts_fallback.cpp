// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/fallback/fallback.h"
#include "torch_openreg/common/math/launch/argument.h"
#include "torch_openreg/chapters/operators/launch/launcher.h"
#include "torch_openreg/chapters/operators/library/registration.h"
#include "torch_openreg/common/math/plan/primitives.h"

namespace openreg {
namespace {

using c10::DispatchKey;

// [operators.other-layouts.run] Each tensor is copied whole, with its indices or its quantizer.
/// PyTorch copies a nested tensor to another device only if it is contiguous.
/// A kernel may look whether a gradient is wanted: the CPU's product with a
/// reduction then also returns which elements it chose.
at::Tensor onHost(const at::Tensor& tensor) {
  at::Tensor copy = (tensor.is_nested() ? tensor.contiguous() : tensor).cpu();
  return copy.set_requires_grad(tensor.requires_grad());
}

void fallbackWhole(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  commonDevice(op.schema().name().c_str(),
               tensorsOf(torch::jit::last(*stack, count)));
  admitFallback(op);
  runOnCopies(op, stack, &onHost);
}

// [operators.other-layouts.register] The dispatcher knows which operators the CPU has for a layout, and which of these we have.
bool asksForHostMemory(const c10::OperatorHandle& op) {
  const std::string_view name = op.schema().name();
  return name == "aten::is_pinned" || name == "aten::_pin_memory";
}

/// Where PyTorch also has a composition, the CPU's kernel shows that it does
/// not serve the layout.
void fallBackFor(DispatchKey cpu, DispatchKey ours) {
  for (const c10::OperatorHandle& op : math::atenOperators()) {
    if (op.hasKernelForDispatchKey(cpu) && !op.hasKernelForDispatchKey(ours) &&
        !asksForHostMemory(op) && fallbackRefusal(op).empty()) {
      implement(op,
                c10::KernelFunction::makeFromBoxedFunction<&fallbackWhole>(),
                ours);
    }
  }
}

[[maybe_unused]] const bool layouts_registered = [] {
  fallBackFor(DispatchKey::SparseCPU, DispatchKey::SparsePrivateUse1);
  fallBackFor(DispatchKey::SparseCsrCPU, DispatchKey::SparseCsrPrivateUse1);
  fallBackFor(DispatchKey::QuantizedCPU, DispatchKey::QuantizedPrivateUse1);
  fallBackFor(DispatchKey::NestedTensorCPU,
              DispatchKey::NestedTensorPrivateUse1);
  return true;
}();

// [-]
}  // namespace
}  // namespace openreg
