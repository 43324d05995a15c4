// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/operators/argument.h"
#include "chapters/operators/launcher.h"
#include "chapters/operators/library_table.h"

#include <ATen/native/Resize.h>
#include <c10/core/ScalarType.h>

namespace openreg {
namespace {

using Stack = torch::jit::Stack;

// [operators.library.sizes] Who gave the outputs their sizes.
/// PyTorch's functional and in-place forms do, before they call the `.out` form
/// with what they made. A user who calls it with `out=` does not.
thread_local bool sizes_are_right = false;

void launchDerived(const c10::OperatorHandle& op, Stack* stack) {
  struct Restore {
    bool before = std::exchange(sizes_are_right, true);
    ~Restore() { sizes_are_right = before; }
  } restore;
  // Nobody has kernels for this key, so PyTorch's own derivation answers.
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::PrivateUse2), stack);
}

// [operators.library.outputs] The results of an `.out` form are some of its arguments.
Stack outputsOf(const c10::OperatorHandle& op,
                c10::ArrayRef<c10::IValue> arguments) {
  Stack outputs;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (op.schema().arguments()[i].is_out()) outputs.push_back(arguments[i]);
  }
  return outputs;
}

void returnOutputs(Stack* stack, size_t arguments, const Stack& outputs) {
  torch::jit::drop(*stack, arguments);
  stack->insert(stack->end(), outputs.begin(), outputs.end());
}

// [operators.library.out] Into a user's tensor: the functional form first, then resize and copy.
void launchIntoOutputs(const c10::OperatorHandle& op, Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const auto arguments = torch::jit::last(*stack, count);
  const Stack outputs = outputsOf(op, arguments);
  Stack results(arguments.begin(),
                arguments.end() - static_cast<ptrdiff_t>(outputs.size()));
  commonDevice(op.schema().name().c_str(), tensorsOf(arguments));
  checkWritten(op, arguments);
  // A reduction takes its type from its output, and autocast leaves outputs be.
  const auto& names = op.schema().arguments();
  for (size_t i = 0; i < results.size(); ++i) {
    if (names[i].name() == "dtype" && results[i].isNone()) {
      results[i] = outputs[0].toTensor().scalar_type();
    }
  }
  c10::impl::ExcludeDispatchKeyGuard guard(
      c10::DispatchKey::AutocastPrivateUse1);
  library().functional_of.at(op).callBoxed(&results);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const at::Tensor& out = outputs[i].toTensor();
    const at::Tensor& result = results[i].toTensor();
    TORCH_CHECK(c10::canCast(result.scalar_type(), out.scalar_type()),
                "result type ", result.scalar_type(),
                " can't be cast to the desired output type ",
                out.scalar_type());
    at::native::resize_output(out, result.sizes());
    out.copy_(result);
  }
  returnOutputs(stack, count, outputs);
}

// [operators.library.run] On the device: PyTorch's CPU kernel, over device memory.
void run(const c10::OperatorHandle& op, const std::vector<Argument>& captured) {
  Stack arguments;
  for (const Argument& argument : captured)
    arguments.push_back(argument.value());
  Stack stack = arguments;
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  for (size_t i = 0; i < captured.size(); ++i) {
    if (op.schema().arguments()[i].is_out())
      bringHome(captured[i].view().tensor(), arguments[i].toTensor());
  }
}

// [operators.library.launch] On the host: one function for every operator of the library.
void launchLibrary(const c10::OperatorHandle& op, Stack* stack) {
  if (!std::exchange(sizes_are_right, false))
    return launchIntoOutputs(op, stack);
  const size_t count = op.schema().arguments().size();
  const char* name = op.schema().name().c_str();
  moveIndices(*stack, count);
  const auto arguments = torch::jit::last(*stack, count);
  const c10::DeviceIndex index = commonDevice(name, tensorsOf(arguments));
  checkWritten(op, arguments);

  std::vector<Argument> captured(arguments.begin(), arguments.end());
  check(launch(nativeStream(currentStream(index)), name,
               [op, captured = std::move(captured)] {
                 runKernel([&] { run(op, captured); });
               }));
  returnOutputs(stack, count, outputsOf(op, arguments));
}

// [operators.library.register] Two boxed functions, hundreds of operators.
[[maybe_unused]] const bool registered = [] {
  for (const auto& [with_out, functional] : library().functional_of) {
    implement(with_out,
              c10::KernelFunction::makeFromBoxedFunction<&launchLibrary>());
  }
  for (const c10::OperatorHandle& op : library().derived) {
    implement(op, c10::KernelFunction::makeFromBoxedFunction<&launchDerived>());
  }
  return true;
}();

// [-]
}  // namespace
}  // namespace openreg
