// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/checks/outputs.h"
#include "torch_openreg/chapters/operators/fallback/fallback.h"
#include "torch_openreg/common/math/launch/argument.h"
#include "torch_openreg/chapters/operators/launch/launcher.h"
#include "torch_openreg/chapters/operators/library/registration.h"
#include "torch_openreg/common/math/plan/primitives.h"

#include <c10/core/DeviceGuard.h>

namespace openreg {
namespace {

using c10::DispatchKey;
using Stack = torch::jit::Stack;

// [operators.other-layouts.assign] What the CPU has written goes back into the tensor that the program passed.
/// A sparse tensor takes the indices and sizes of `from` too.
void assign(const at::Tensor& to, const at::Tensor& from) {
  if (to.key_set().has(DispatchKey::SparseCsrPrivateUse1)) {
    to.resize_as_sparse_(from.to(to.device()));
  } else if (!to.is_sparse() && to.sizes() != from.sizes()) {
    to.resize_(from.sizes());
  }
  to.copy_(from);
}

// [operators.other-layouts.run] Each tensor is copied whole, with its indices or its quantizer, and twins stand for the originals.
/// PyTorch copies a nested tensor to another device only if it is contiguous.
at::Tensor onHost(const at::Tensor& tensor) {
  return (tensor.is_nested() ? tensor.contiguous() : tensor).cpu();
}

void fallbackWhole(const c10::OperatorHandle& op, Stack* stack) {
  Stack arguments = torch::jit::pop(*stack, op.schema().arguments().size());
  const c10::Device device(kDeviceType, commonDevice(op.schema().name().c_str(),
                                                     tensorsOf(arguments)));
  admitFallback(op);
  std::vector<std::pair<at::Tensor, at::Tensor>> twins;
  const auto twinOf = [&](const at::Tensor& tensor) {
    for (const auto& [twin, original] : twins)
      if (tensor.is_same(original)) return twin;
    return twins.emplace_back(onHost(tensor), tensor).first;
  };
  for (const c10::IValue& argument : arguments)
    stack->push_back(mapTensors(argument, twinOf));
  op.callBoxed(*stack);
  const c10::DeviceGuard guard(device);
  forEachWritten(op, arguments, [&](const at::Tensor& written, size_t) {
    assign(written, twinOf(written));
  });
  const size_t results = op.schema().returns().size();
  for (size_t i = 0; i < results; ++i) {
    c10::IValue& result = torch::jit::peek(*stack, i, results);
    result = mapTensors(result, [&](const at::Tensor& tensor) {
      for (const auto& [twin, original] : twins)
        if (tensor.is_same(twin)) return original;
      return tensor.to(device);
    });
  }
}

// [operators.other-layouts.register] The dispatcher knows which operators the CPU has for a layout, and which of these we have.
/// Where PyTorch also has a composition, the CPU's kernel shows that it does
/// not serve the layout.
bool asksForHostMemory(const c10::OperatorHandle& op) {
  const std::string_view name = op.schema().name();
  return name == "aten::is_pinned" || name == "aten::_pin_memory";
}

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
