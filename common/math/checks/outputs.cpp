// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/checks/checks.h"
#include "torch_openreg/common/tensors.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

namespace openreg {

// [common.outputs.written] The schema says which arguments an operator writes.
void checkWritten(const char* name, const at::Tensor& written) {
  TORCH_CHECK(!written.defined() || written.is_privateuseone(), name,
              " on an openreg device cannot write to a tensor on ",
              written.device(), "; move that tensor with .to().");
}

void checkWritten(const c10::OperatorHandle& op,
                  c10::ArrayRef<c10::IValue> arguments) {
  forEachWritten(op, arguments, [&](const at::Tensor& written, size_t) {
    checkWritten(op.schema().name().c_str(), written);
  });
}

// [common.outputs.alias] A result and the argument that it aliases carry the same mark in the schema.
const c10::IValue* writtenFor(const c10::OperatorHandle& op,
                              c10::ArrayRef<c10::IValue> arguments, size_t i) {
  const c10::AliasInfo* alias = op.schema().returns()[i].alias_info();
  for (size_t j = 0; alias && j < arguments.size(); ++j) {
    const c10::AliasInfo* candidate = op.schema().arguments()[j].alias_info();
    if (candidate && *candidate == *alias) return &arguments[j];
  }
  return nullptr;
}

// [common.outputs.sequence] A sequence fills an output of any shape that has as many elements, and its Meta kernel does not say so.
static bool fillsAnyShape(const c10::OperatorHandle& op) {
  static const std::unordered_set<std::string_view> names{
      "aten::arange", "aten::linspace", "aten::logspace", "aten::range"};
  return names.contains(op.schema().name());
}

size_t outputsToResize(const c10::OperatorHandle& op,
                       c10::ArrayRef<c10::IValue> arguments,
                       c10::ArrayRef<c10::IValue> results) {
  size_t found = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    const auto* out = writtenFor(op, arguments, i);
    if (!out || !out->isTensor()) continue;
    const at::Tensor &to = out->toTensor(), &like = results[i].toTensor();
    if (to.sizes() == like.sizes()) continue;
    const bool fits = to.numel() == like.numel() && fillsAnyShape(op);
    if (!fits) found |= size_t{1} << i;
  }
  return found;
}

// [common.outputs.separate] Elementwise operators and in-place forms cannot resize their own input; any other operator reads a copy.
/// In-place forms call the `.out` form and pass their tensor first and last.
static bool hasInPlaceForm(const c10::OperatorHandle& op) {
  return c10::Dispatcher::singleton()
      .findSchema({op.schema().name() + "_", ""})
      .has_value();
}

static void separateInputs(const c10::OperatorHandle& op,
                           std::span<c10::IValue> inputs, const at::Tensor& out,
                           at::IntArrayRef sizes) {
  const auto tensors = tensorsOf(inputs);
  const bool is_input =
      std::any_of(tensors.begin(), tensors.end(),
                  [&](const at::Tensor& input) { return input.is_same(out); });
  const bool is_elementwise =
      std::all_of(tensors.begin(), tensors.end(), [&](const at::Tensor& input) {
        return at::is_expandable_to(input.sizes(), sizes);
      });
  const bool is_in_place =
      is_input && tensors[0].is_same(out) && hasInPlaceForm(op);
  TORCH_CHECK(!is_in_place && !(is_input && is_elementwise),
              "output with shape ", out.sizes(),
              " doesn't match the broadcast shape ", sizes);
  for (c10::IValue& input : inputs) {
    input = mapTensors(input, [&](const at::Tensor& tensor) {
      return tensor.is_alias_of(out) ? tensor.clone() : tensor;
    });
  }
}

// [common.outputs.resize-all] An argument that is written in place keeps its size.
/// Whether PyTorch resizes an output of `op` without a warning.
static bool resizesSilently(const c10::OperatorHandle& op) {
  static const std::unordered_set<std::string_view> names{
      "aten::eye", "aten::linspace", "aten::logspace", "aten::range"};
  return names.contains(op.schema().name());
}

void resizeOutputs(const c10::OperatorHandle& op,
                   std::span<c10::IValue> arguments,
                   c10::ArrayRef<c10::IValue> results) {
  const size_t to_resize = outputsToResize(op, arguments, results);
  if (to_resize == 0) return;
  const size_t inputs = inputsOf(op);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!(to_resize >> i & 1)) continue;
    const at::Tensor out = writtenFor(op, arguments, i)->toTensor();
    const at::Tensor& like = results[i].toTensor();
    TORCH_CHECK(inputs < arguments.size(), "output with shape ", out.sizes(),
                " doesn't match the broadcast shape ", like.sizes());
    separateInputs(op, arguments.first(inputs), out, like.sizes());
    resizeLike(out, like, /*warns=*/!resizesSilently(op));
  }
}

// [common.outputs.resize] The user's output keeps its strides unless its sizes change.
void resizeLike(const at::Tensor& out, const at::Tensor& like, bool warns) {
  // PyTorch does not warn of an output that was empty.
  if (!warns && out.sizes() != like.sizes()) out.resize_({0});
  if (!at::native::resize_output(out, like.sizes())) return;
  // Strides with gaps need more memory than the elements do.
  const size_t reach =
      at::detail::computeStorageNbytes(like.sizes(), like.strides(), 1);
  out.resize_({static_cast<int64_t>(reach)});
  out.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(),
                                                   like.strides());
}

// [-]
}  // namespace openreg
