// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/plan/prediction.h"

#include <ATen/EmptyTensor.h>
#include <ATen/OpMathType.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/result_type_native.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>

namespace openreg {
namespace {

using Sizes = at::IntArrayRef;
// [common.announcement.elementwise] The common case of an elementwise operator: contiguous tensors of one size, and numbers.
c10::IValue announced(Sizes sizes, at::ScalarType dtype,
                      std::optional<at::MemoryFormat> format = {}) {
  return at::Tensor(at::detail::empty_meta(sizes, dtype, format));
}

/// The tensor whose sizes the result has; null if this is not the common case.
const at::Tensor* largest(const Stack& arguments, size_t count) {
  const at::Tensor* found = nullptr;
  for (size_t i = 0; i < count; ++i) {
    const at::Tensor& tensor = arguments[i].toTensor();
    if (!tensor.is_contiguous()) return nullptr;
    if (tensor.dim() == 0) continue;
    if (found && found->sizes() != tensor.sizes()) return nullptr;
    found = &tensor;
  }
  return found;
}

template <size_t count>
Stack announceBool(const Stack& arguments) {
  const at::Tensor* like = largest(arguments, count);
  return like ? Stack{announced(like->sizes(), at::kBool)} : Stack{};
}

template <size_t count>
Stack announceSame(const Stack& arguments) {
  const at::Tensor* like = largest(arguments, count);
  if (!like || !like->is_floating_point() ||
      like->dtype() != arguments[0].toTensor().dtype())
    return {};
  return {announced(like->sizes(), like->scalar_type())};
}

// [common.announcement.loss] PyTorch's own function divides by the number of elements, so we announce a result without any.
Stack announceLossBackward(const Stack& arguments) {
  const at::Tensor& self = arguments[1].toTensor();
  return self.numel() ? announceSame<3>(arguments)
                      : Stack{announced(self.sizes(), self.scalar_type())};
}

Stack announceWhere(const Stack& arguments) {
  const at::Tensor* like = largest(arguments, 3);
  if (!like || arguments[0].toTensor().scalar_type() != at::kBool) return {};
  return {announced(like->sizes(),
                    at::native::result_type(arguments[1].toTensor(),
                                            arguments[2].toTensor()))};
}

// [common.announcement.norms] The common case of a norm: everything is contiguous and of one dtype.
bool areAlike(const Stack& arguments, Sizes parameters) {
  const at::Tensor& input = arguments[0].toTensor();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].isTensor() || !arguments[i].toTensor().defined())
      continue;
    const at::Tensor& tensor = arguments[i].toTensor();
    if (!tensor.is_contiguous() || !tensor.is_floating_point() ||
        tensor.scalar_type() != input.scalar_type() ||
        (i > 0 && tensor.sizes() != parameters))
      return false;
  }
  return input.numel() > 0;
}

Stack announceNorm(const at::Tensor& input, Sizes statistics,
                   at::ScalarType dtype,
                   std::optional<at::MemoryFormat> format = {}) {
  return {announced(input.sizes(), input.scalar_type(), format),
          announced(statistics, dtype), announced(statistics, dtype)};
}

// [common.announcement.each-norm] Norms keep statistics for different dimensions, and those of a layer norm are float32 or wider.
Stack announceLayerNorm(const Stack& arguments) {
  const at::Tensor& input = arguments[0].toTensor();
  const auto shape = arguments[1].toIntVector();
  const int64_t outer = input.dim() - static_cast<int64_t>(shape.size());
  if (outer < 0 || shape.empty() || input.sizes().slice(outer) != shape ||
      !areAlike(arguments, shape))
    return {};
  auto statistics = input.sizes().vec();
  std::fill(statistics.begin() + outer, statistics.end(), 1);
  return announceNorm(input, statistics, at::toOpMathType(input.scalar_type()));
}

// [common.announcement.group-norm] The statistics of a group norm have the dtype of its parameters, if that is wider.
Stack announceGroupNorm(const Stack& arguments) {
  const int64_t groups = arguments[6].toInt(), channels = arguments[4].toInt();
  const at::Tensor& input = arguments[0].toTensor();
  const at::ScalarType dtype = input.scalar_type();
  if (groups <= 0 || channels % groups != 0 || input.dim() < 2 ||
      input.size(1) != channels || input.numel() == 0)
    return {};
  at::ScalarType wider = dtype;
  for (const at::Tensor& each : tensorsOf({arguments[1], arguments[2]})) {
    if (each.sizes() != channels) return {};
    wider = at::promoteTypes(wider, each.scalar_type());
  }
  if (wider != dtype && !at::isReducedFloatingType(dtype)) return {};
  return announceNorm(input, {arguments[3].toInt(), groups}, wider,
                      input.suggest_memory_format());
}

Stack announceBatchNorm(const Stack& arguments) {
  const at::Tensor& input = arguments[0].toTensor();
  // Statistics of 16 bits that are given are returned as they are.
  if (input.dim() < 2 || input.itemsize() < 4 ||
      !areAlike(arguments, {input.size(1)}) ||
      (!arguments[5].toBool() && !arguments[3].isTensor()))
    return {};
  return announceNorm(input, {input.size(1)}, input.scalar_type());
}

// [common.announcement.group-backward] PyTorch's own function divides by the number of elements in a group.
Stack announceGroupNormBackward(const Stack& arguments) {
  const at::Tensor& input = arguments[1].toTensor();
  if (input.numel() > 0) return {};
  const auto mask = arguments[9].toBoolList();
  const int64_t channels = arguments[6].toInt();
  const auto wanted = [&](size_t i, Sizes sizes) -> c10::IValue {
    return mask.get(i) ? announced(sizes, input.scalar_type()) : at::Tensor();
  };
  return {wanted(0, input.sizes()), wanted(1, channels), wanted(2, channels)};
}

// [common.announcement.indexed] PyTorch compares the first elements of meta tensors, and these may have none.
Stack announceIndexed(const Stack& arguments) {
  const at::Tensor& self = arguments[0].toTensor();
  if (self.numel() > 0 && arguments[2].toTensor().numel() > 0) return {};
  return {announced(self.sizes(), self.scalar_type())};
}

// [common.announcement.table] All other cases, errors included, are left to PyTorch.
}  // namespace

Stack announceInCpp(const c10::OperatorHandle& op, const Stack& arguments) {
  using Announcement = Stack (*)(const Stack&);
  static const auto& known = *new std::unordered_map<std::string, Announcement>{
      {"aten::hardswish", &announceSame<1>},
      {"aten::hardswish_backward", &announceSame<2>},
      {"aten::hardtanh", &announceSame<1>},
      {"aten::index_add", &announceIndexed},
      {"aten::index_add_", &announceIndexed},
      {"aten::index_reduce", &announceIndexed},
      {"aten::index_reduce_", &announceIndexed},
      {"aten::isnan", &announceBool<1>},
      {"aten::logical_and", &announceBool<2>},
      {"aten::logical_not", &announceBool<1>},
      {"aten::logical_or", &announceBool<2>},
      {"aten::logical_xor", &announceBool<2>},
      {"aten::huber_loss_backward", &announceLossBackward},
      {"aten::mse_loss_backward", &announceLossBackward},
      {"aten::smooth_l1_loss_backward", &announceLossBackward},
      {"aten::native_group_norm_backward", &announceGroupNormBackward},
      {"aten::native_batch_norm", &announceBatchNorm},
      {"aten::native_group_norm", &announceGroupNorm},
      {"aten::native_layer_norm", &announceLayerNorm},
      {"aten::where", &announceWhere},
  };
  if (hasOutputs(op)) return {};
  const auto found = known.find(op.schema().name());
  return found == known.end() ? Stack{} : found->second(arguments);
}

// [-]
}  // namespace openreg
