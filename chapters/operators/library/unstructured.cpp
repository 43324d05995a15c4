// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/operators/launch/argument.h"
#include "chapters/operators/launch/launcher.h"
#include "chapters/operators/library/library_table.h"
#include "chapters/operators/checks/outputs.h"
#include "chapters/operators/library/prediction.h"
#include "chapters/operators/checks/check_types.h"
#include "chapters/operators/library/unstructured_table.h"

#include <ATen/ops/empty_strided.h>

#include <exception>
#include <memory>

namespace openreg {
namespace {

using Stack = torch::jit::Stack;

// [operators.unstructured.outputs] A result is an argument that was written, or has the shape of the prediction.
const c10::IValue* written(const c10::FunctionSchema& schema,
                           const Stack& arguments,
                           const c10::AliasInfo* alias) {
  for (size_t i = 0; alias && i < arguments.size(); ++i) {
    const c10::AliasInfo* candidate = schema.arguments()[i].alias_info();
    if (candidate && *candidate == *alias) return &arguments[i];
  }
  return nullptr;
}

Stack outputsLike(const c10::OperatorHandle& op, const Stack& predicted,
                  const Stack& arguments, c10::DeviceIndex device) {
  Stack outputs;
  for (size_t i = 0; i < predicted.size(); ++i) {
    const auto* given =
        written(op.schema(), arguments, op.schema().returns()[i].alias_info());
    if (given && given->isTensor())
      resizeLike(given->toTensor(), predicted[i].toTensor());
    outputs.push_back(
        given ? *given : mapTensors(predicted[i], [&](const at::Tensor& like) {
          return at::empty_strided(like.sizes(), like.strides(),
                                   like.options().device(kDeviceType, device));
        }));
  }
  return outputs;
}

// [operators.unstructured.compute] On the device: the CPU's kernel, whose results are its own.
Stack compute(const c10::OperatorHandle& op,
              const std::vector<Argument>& captured) {
  prepareThread();
  Stack stack;
  for (const Argument& argument : captured) stack.push_back(argument.value());
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  return stack;
}

// [operators.unstructured.deliver] Results go to where the host expects them, if they are what it expects.
void deliver(const Stack& results, const std::vector<Argument>& outputs) {
  for (size_t i = 0; i < results.size(); ++i) {
    const auto from = tensorsOf({results[i]});
    const auto to = tensorsOf({outputs[i].value()});
    TORCH_CHECK(from.size() == to.size(), "Result ", i,
                " is defined on one side only.");
    for (size_t j = 0; j < to.size(); ++j) {
      TORCH_CHECK(to[j].sizes() == from[j].sizes() &&
                      to[j].scalar_type() == from[j].scalar_type(),
                  "Result ", i, " was announced as ", to[j].scalar_type(),
                  to[j].sizes(), " and is ", from[j].scalar_type(),
                  from[j].sizes(), ".");
      bringHome(to[j], from[j]);
    }
  }
}

// [operators.unstructured.launch] Sizes, outputs, launch.
template <Size size>
void launchSized(const c10::OperatorHandle& op, const char* name,
                 c10::Stream stream, const Stack& arguments, Stack* stack) {
  Stack predicted;
  if (size == Size::first) {
    predicted = predict(op, arguments);
  } else {
    for (const auto& result : op.schema().returns())
      predicted.push_back(
          *written(op.schema(), arguments, result.alias_info()));
  }
  *stack = outputsLike(op, predicted, arguments, stream.device_index());
  check(launch(
      nativeStream(stream), name,
      [op, from = std::vector<Argument>(arguments.begin(), arguments.end()),
       to = std::vector<Argument>(stack->begin(), stack->end())] {
        runKernel([&] { deliver(compute(op, from), to); });
      }));
}

// [operators.unstructured.wait] If the size depends on the data: launch, wait, outputs, launch.
/// Errors of the kernel are thrown here, as on the CPU: the host is still there
/// to catch them.
template <>
void launchSized<Size::last>(const c10::OperatorHandle& op, const char* name,
                             c10::Stream stream, const Stack& arguments,
                             Stack* stack) {
  auto results = std::make_shared<Stack>();
  auto error = std::make_shared<std::exception_ptr>();
  check(launch(
      nativeStream(stream), name,
      [op, results, error,
       from = std::vector<Argument>(arguments.begin(), arguments.end())] {
        try {
          *results = compute(op, from);
        } catch (...) {
          *error = std::current_exception();
        }
      }));
  stream.synchronize();
  if (*error) std::rethrow_exception(*error);
  *stack = outputsLike(op, *results, arguments, stream.device_index());
  check(launch(
      nativeStream(stream), name,
      [results, to = std::vector<Argument>(stack->begin(), stack->end())] {
        runKernel([&] { deliver(*results, to); });
      }));
}

// [operators.unstructured.run] One function for all of them, made three times.
template <Size size>
void launchUnstructured(const c10::OperatorHandle& op, Stack* stack) {
  const char* name = op.schema().name().c_str();
  Stack arguments = torch::jit::pop(*stack, op.schema().arguments().size());
  moveIndices(arguments, arguments.size());
  const c10::Stream stream =
      currentStream(commonDevice(name, tensorsOf(arguments)));
  checkWritten(op, arguments);
  checkOverlap(op, arguments, /*structured=*/false);
  if (size != Size::last) checkTypes(op, arguments, /*structured=*/false);
  Stack results;
  launchSized<size>(op, name, stream, arguments, &results);
  stack->insert(stack->end(), results.begin(), results.end());
}

// [operators.unstructured.register] What is registered already is left alone, so this file is linked last.
c10::KernelFunction kernelFor(Size size) {
  using c10::KernelFunction;
  switch (size) {
    case Size::first:
      return KernelFunction::makeFromBoxedFunction<
          &launchUnstructured<Size::first>>();
    case Size::given:
      return KernelFunction::makeFromBoxedFunction<
          &launchUnstructured<Size::given>>();
    default:
      return KernelFunction::makeFromBoxedFunction<
          &launchUnstructured<Size::last>>();
  }
}

[[maybe_unused]] const bool registered = [] {
  for (const c10::OperatorHandle& op : unstructured())
    implement(op, kernelFor(sizeOf(op)));
  return true;
}();

// [-]
}  // namespace
}  // namespace openreg
