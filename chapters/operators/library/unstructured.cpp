// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/launch/argument.h"
#include "torch_openreg/chapters/operators/launch/launcher.h"
#include "torch_openreg/chapters/operators/library/captured.h"
#include "torch_openreg/chapters/operators/library/correction.h"
#include "torch_openreg/chapters/operators/library/library_table.h"
#include "torch_openreg/chapters/operators/corrected/corrected.h"
#include "torch_openreg/chapters/operators/checks/indices.h"
#include "torch_openreg/chapters/operators/checks/outputs.h"
#include "torch_openreg/chapters/operators/library/prediction.h"
#include "torch_openreg/chapters/operators/checks/check_types.h"
#include "torch_openreg/chapters/operators/library/unstructured_table.h"

#include <ATen/ops/empty_strided.h>

#include <memory>
#include <stdexcept>

namespace openreg {
namespace {

using Stack = torch::jit::Stack;

// [operators.unstructured.outputs] A result is either an argument that was written to or a new tensor as predicted.
Stack outputsLike(const c10::OperatorHandle& op, const Stack& predicted,
                  const Stack& arguments, c10::DeviceIndex device) {
  Stack outputs;
  for (size_t i = 0; i < predicted.size(); ++i) {
    const auto* given = writtenFor(op, arguments, i);
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

// [operators.unstructured.compute] On the device, the CPU's kernel allocates its own results.
Stack compute(const c10::OperatorHandle& op, const Captured& from,
              const std::vector<Argument>& to, const Modes& modes) {
  Stack stack = from.values();
  if (!to.empty() && to[0].isTensor())
    promoteAsLaunched(stack, stack.size(), to[0].view().tensor().scalar_type(),
                      modes.default_dtype);
  callCorrected(op, stack);
  return stack;
}

// [operators.unstructured.deliver] The results are converted to the dtypes and strides that were announced.
/// For a bug, of which the program is told as of a refusal.
template <class... Parts>
[[noreturn]] void throwUnannounced(const Parts&... parts) {
  throw std::logic_error(c10::str(parts...));
}

/// Where the CPU's kernel leaves out a result, because nothing will read it,
/// the output is zeros. Any other size than the announced one is a bug.
void deliverTensor(size_t i, const at::Tensor& to, const at::Tensor& from) {
  if (!to.defined() && from.defined())
    throwUnannounced("Result ", i, " was announced as undefined and is ",
                     from.scalar_type(), from.sizes(), ".");
  if (!to.defined()) return;
  if (!from.defined() || (from.numel() == 0 && to.numel() > 0)) {
    to.zero_();
    return;
  }
  if (to.sizes() != from.sizes())
    throwUnannounced("Result ", i, " was announced as ", to.scalar_type(),
                     to.sizes(), " and is ", from.scalar_type(), from.sizes(),
                     ".");
  writeBack(to, from);
}

void deliver(const Stack& results, const std::vector<Argument>& outputs) {
  for (size_t i = 0; i < results.size(); ++i) {
    const c10::IValue output = outputs[i].value();
    if (output.isTensor()) {
      deliverTensor(i, output.toTensor(), results[i].toTensor());
    } else if (output.isTensorList()) {
      const auto to = tensorsInList(output), from = tensorsInList(results[i]);
      if (to.size() != from.size())
        throwUnannounced("Result ", i, " has ", from.size(), " tensors; ",
                         to.size(), " were announced.");
      for (size_t j = 0; j < to.size(); ++j) deliverTensor(i, to[j], from[j]);
    }
  }
}

// [operators.unstructured.predict] If the Meta kernel refuses the arguments, the CPU's kernel may have a better error message.
Stack predictOrRefuse(const c10::OperatorHandle& op, const Stack& arguments) {
  try {
    return predict(op, arguments);
  } catch (const std::exception&) {
    checkTypes(op, arguments, /*results=*/{}, /*structured=*/false);
    throw;
  }
}

// [operators.unstructured.launch] If the size is known, the host allocates the outputs and launches without waiting.
template <SizeSource source>
void launchSized(const c10::OperatorHandle& op, const char* name,
                 c10::Stream stream, Stack& arguments, Stack* stack) {
  Stack predicted;
  if (source == SizeSource::meta) {
    predicted = predictOrRefuse(op, arguments);
  } else {
    for (size_t i = 0; i < op.schema().returns().size(); ++i)
      predicted.push_back(*writtenFor(op, arguments, i));
  }
  checkOverlap(op, arguments, /*structured=*/false, /*in_place=*/false,
               outputsToResize(op, arguments, predicted));
  checkTypes(op, arguments, predicted, /*structured=*/false);
  resizeOutputs(op, arguments, predicted);
  *stack = outputsLike(op, predicted, arguments, stream.device_index());
  check(launch(nativeStream(stream), name,
               [op, from = Captured(arguments),
                to = std::vector<Argument>(stack->begin(), stack->end()),
                modes = Modes()] {
                 runKernel(modes,
                           [&] { deliver(compute(op, from, to, modes), to); });
               }));
}

// [operators.unstructured.wait] If the size depends on the data, the host waits for the result before it allocates the outputs.
/// Because the host waits, it throws the kernel's errors itself, as on the CPU.
template <>
void launchSized<SizeSource::result>(const c10::OperatorHandle& op,
                                     const char* name, c10::Stream stream,
                                     Stack& arguments, Stack* stack) {
  checkOverlap(op, arguments, /*structured=*/false);
  auto results = std::make_shared<Stack>();
  runAndWait(name, stream, [op, results, from = Captured(arguments)] {
    *results = compute(op, from, {}, {});
  });
  *stack = outputsLike(op, *results, arguments, stream.device_index());
  check(launch(
      nativeStream(stream), name,
      [results, to = std::vector<Argument>(stack->begin(), stack->end())] {
        runKernel({}, [&] { deliver(*results, to); });
      }));
}

// [operators.unstructured.run] One template serves all these operators, with an instance for each source of the size.
template <SizeSource source>
void launchUnstructured(const c10::OperatorHandle& op, Stack* stack) {
  const char* name = op.schema().name().c_str();
  Stack arguments = torch::jit::pop(*stack, op.schema().arguments().size());
  moveIndices(arguments, arguments.size());
  const c10::Stream stream =
      currentStream(commonDevice(name, tensorsOf(arguments)));
  checkWritten(op, arguments);
  Stack results;
  if (at::globalContext().deterministicAlgorithms() && hasCudaOnlyAlert(op)) {
    // PyTorch's Meta kernel would refuse, so the result itself says its size.
    launchSized<SizeSource::result>(op, name, stream, arguments, &results);
  } else {
    launchSized<source>(op, name, stream, arguments, &results);
  }
  stack->insert(stack->end(), results.begin(), results.end());
}

// [operators.unstructured.index-put] PyTorch has no Meta function that checks these sizes.
void launchIndexPut(const c10::OperatorHandle& op, Stack* stack) {
  const size_t count = op.schema().arguments().size();
  moveIndices(*stack, count);
  const size_t first = stack->size() - count;
  const at::Tensor self = (*stack)[first].toTensor();
  c10::IValue& indices = (*stack)[first + 1];
  checkIndices(self, tensorsInList(indices));
  const auto counted = countMasks(tensorsInList(indices));
  checkIndexPut(self, counted, (*stack)[first + 2].toTensor());
  c10::List<std::optional<at::Tensor>> list;
  for (const at::Tensor& index : counted)
    list.push_back(index.defined() ? std::optional(index) : std::nullopt);
  indices = std::move(list);
  launchUnstructured<SizeSource::meta>(op, stack);
}

// [operators.unstructured.register] This file is linked last of its section, because it must see the registrations before it.
c10::KernelFunction kernelFor(SizeSource source) {
  using c10::KernelFunction;
  switch (source) {
    case SizeSource::meta:
      return KernelFunction::makeFromBoxedFunction<
          &launchUnstructured<SizeSource::meta>>();
    case SizeSource::arguments:
      return KernelFunction::makeFromBoxedFunction<
          &launchUnstructured<SizeSource::arguments>>();
    default:
      return KernelFunction::makeFromBoxedFunction<
          &launchUnstructured<SizeSource::result>>();
  }
}

[[maybe_unused]] const bool unstructured_registered = [] {
  for (const c10::OperatorHandle& op : unstructured()) {
    const bool is_index_put = op.schema().name() == "aten::_index_put_impl_";
    implement(
        op, is_index_put
                ? c10::KernelFunction::makeFromBoxedFunction<&launchIndexPut>()
                : kernelFor(sizeSource(op)));
  }
  return true;
}();

// [-]
}  // namespace
}  // namespace openreg
