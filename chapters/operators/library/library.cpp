// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/corrected/corrected.h"
#include "torch_openreg/chapters/operators/launch/argument.h"
#include "torch_openreg/chapters/operators/launch/launcher.h"
#include "torch_openreg/chapters/operators/minimal/without_memory.h"
#include "torch_openreg/chapters/operators/library/captured.h"
#include "torch_openreg/chapters/operators/library/derived.h"
#include "torch_openreg/chapters/operators/library/library_table.h"
#include "torch_openreg/chapters/operators/checks/outputs.h"
#include "torch_openreg/chapters/operators/library/prediction.h"
#include "torch_openreg/chapters/operators/library/unboxed.h"
#include "torch_openreg/chapters/operators/checks/check_types.h"

#include <algorithm>

namespace openreg {

// [operators.derived.take] The flag holds for one call, because the kernel may call other `.out` forms.
static thread_local bool derived_call = false;

DerivedCall::DerivedCall() : before_(std::exchange(derived_call, true)) {}
DerivedCall::~DerivedCall() { derived_call = before_; }
bool DerivedCall::take() { return std::exchange(derived_call, false); }

// [-]
namespace {

using Stack = torch::jit::Stack;

// [operators.library.device] The check runs at each call, so it does not build a list of all tensors.
c10::DeviceIndex deviceOf(const c10::OperatorHandle& op,
                          c10::ArrayRef<c10::IValue> arguments) {
  CommonDevice device(op.schema().name().c_str());
  for (const c10::IValue& argument : arguments) {
    if (argument.isTensor()) {
      device.add(argument.toTensor());
    } else if (argument.isTensorList() || argument.isOptionalTensorList()) {
      for (const at::Tensor& tensor : tensorsOf({argument})) device.add(tensor);
    }
  }
  return device.index();
}

// [operators.library.sizes] At PrivateUse2, where nobody has registered kernels, the dispatcher finds PyTorch's derived kernel.
void launchDerived(const c10::OperatorHandle& op, Stack* stack) {
  const size_t count = op.schema().arguments().size();
  moveIndices(*stack, count);
  deviceOf(op, torch::jit::last(*stack, count));
  const DerivedCall call;
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::PrivateUse2), stack);
}

// [operators.library.outputs] An `.out` form returns the outputs that the caller passed.
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

// [operators.library.out] The user's output gets the size that PyTorch's functional form would have allocated for it.
/// PyTorch's Meta kernel for an `.out` form is written in Python. The
/// functional form is derived in C++ and calls the `.out` form, which then
/// launches nothing. If the output has another dtype, the Meta kernel may
/// refuse it.
Stack announce(const c10::OperatorHandle& op,
               c10::ArrayRef<c10::IValue> arguments, const Stack& outputs) {
  const auto& functional = library().with_out.at(op);
  const bool indexed =
      std::any_of(arguments.begin(), arguments.end(), [](const auto& argument) {
        return argument.isOptionalTensorList();  // A mask has to be counted.
      });
  if (!functional || indexed) return predict(op, arguments.vec());
  Stack stack(arguments.begin(), arguments.end() - outputs.size());
  {
    const WithoutMemory scope;
    functional->redispatchBoxed(
        c10::DispatchKeySet(c10::DispatchKey::PrivateUse2), &stack);
  }
  const bool same_dtypes = std::equal(
      stack.begin(), stack.end(), outputs.begin(),
      [](const c10::IValue& announced, const c10::IValue& output) {
        return announced.toTensor().dtype() == output.toTensor().dtype();
      });
  return same_dtypes ? stack : predict(op, arguments.vec());
}

/// The arguments are those of the user's call, and the outputs among them.
void checkOutputs(const c10::OperatorHandle& op,
                  std::span<c10::IValue> arguments, const Stack& outputs) {
  const Stack announced =
      predict(op, Stack(arguments.begin(), arguments.end()),
              [&] { return announce(op, arguments, outputs); });
  checkOverlap(op, arguments, /*structured=*/true, /*in_place=*/false,
               outputsToResize(op, arguments, announced));
  resizeOutputs(op, arguments, announced);
}

// [operators.captured.same] PyTorch's kernels treat an output that is their input itself differently from one that shares its memory.
}  // namespace

Captured::Captured(c10::ArrayRef<c10::IValue> arguments)
    : arguments_(arguments.begin(), arguments.end()) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    size_t first = arguments[i].isTensor() ? 0 : i;
    while (first < i &&
           !(arguments[first].isTensor() &&
             arguments[first].toTensor().is_same(arguments[i].toTensor())))
      ++first;
    first_.push_back(static_cast<uint8_t>(first));
  }
}

torch::jit::Stack Captured::values() const {
  torch::jit::Stack values;
  for (size_t i = 0; i < arguments_.size(); ++i) {
    values.push_back(first_[i] < i ? values[first_[i]] : arguments_[i].value());
  }
  return values;
}

namespace {

// [operators.library.run] The device half runs PyTorch's CPU kernel over device memory.
void run(const c10::OperatorHandle& op, const Captured& captured,
         at::ScalarType default_dtype) {
  Stack arguments = captured.values();
  const size_t inputs = arguments.size() - op.schema().returns().size();
  promoteAsLaunched(arguments, inputs,
                    arguments[inputs].toTensor().scalar_type(), default_dtype);
  Stack stack = arguments;
  callCorrected(op, stack);
  for (size_t i = inputs; i < captured.size(); ++i)
    writeBack(captured[i].view().tensor(), arguments[i].toTensor());
}

// [operators.library.wait] Operators of linear algebra have an argument that says whether the host throws the error, and so must wait.
bool wantsError(const c10::OperatorHandle& op,
                c10::ArrayRef<c10::IValue> arguments) {
  const auto asks = op.schema().argumentIndexWithName("check_errors");
  return !asks || arguments[*asks].toBool();
}

// [operators.library.launch] The host half checks, captures and enqueues, for every operator of the library.
template <bool may_refuse>
void launchLibrary(const c10::OperatorHandle& op, Stack* stack) {
  const bool called_by_user = !DerivedCall::take();
  const size_t count = op.schema().arguments().size();
  const char* name = op.schema().name().c_str();
  moveIndices(*stack, count);
  const auto arguments = std::span(*stack).last(count);
  const c10::DeviceIndex index = deviceOf(op, arguments);
  const Stack outputs = outputsOf(op, arguments);
  if (WithoutMemory::isActive()) return returnOutputs(stack, count, outputs);
  checkWritten(op, arguments);
  if (called_by_user) {
    checkOutputs(op, arguments, outputs);
  } else {
    checkOverlap(op, arguments, /*structured=*/true, /*in_place=*/true);
  }
  checkTypes(op, arguments, /*results=*/{}, /*structured=*/true);

  const c10::Stream stream = currentStream(index);
  Captured captured(arguments);
  const Modes modes;
  if (may_refuse && wantsError(op, arguments)) {
    runAndWait(name, stream, [op, captured = std::move(captured), modes] {
      run(op, captured, modes.default_dtype);
    });
  } else {
    check(launch(nativeStream(stream), name,
                 [op, captured = std::move(captured), modes] {
                   runKernel(modes,
                             [&] { run(op, captured, modes.default_dtype); });
                 }));
  }
  returnOutputs(stack, count, outputs);
}

// [operators.library.register] Three boxed kernels serve hundreds of operators, except those that are called most.
[[maybe_unused]] const bool library_registered = [] {
  using c10::KernelFunction;
  for (const auto& [op, functional] : library().with_out) {
    implement(
        op,
        mayRefuse(op)
            ? KernelFunction::makeFromBoxedFunction<&launchLibrary<true>>()
            : KernelFunction::makeFromBoxedFunction<&launchLibrary<false>>());
  }
  for (const c10::OperatorHandle& op : library().derived) {
    const KernelFunction* unboxed = unboxedKernel(op);
    implement(
        op, unboxed ? *unboxed
                    : KernelFunction::makeFromBoxedFunction<&launchDerived>());
  }
  return true;
}();

// [-]
}  // namespace
}  // namespace openreg
