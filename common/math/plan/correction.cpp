// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/kernels/kernels.h"
#include "torch_openreg/common/math/plan/prediction.h"

#include <ATen/Context.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_permuted.h>
#include <ATen/ops/result_type.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace openreg {

// [common.correction.cuda] A Meta kernel takes plain meta tensors for CUDA's, and five of them then describe strides that CUDA alone has.
namespace {

using Dimensions = std::vector<int64_t>;

at::ScalarType typeOf(const c10::IValue& tensor) {
  return tensor.toTensor().scalar_type();
}

/// Sorts dimensions of `tensor` by their strides, the largest first.
void sortByStride(const at::Tensor& tensor, Dimensions::iterator begin,
                  Dimensions::iterator end) {
  std::stable_sort(begin, end, [&](int64_t a, int64_t b) {
    return tensor.stride(a) > tensor.stride(b);
  });
}

// [common.correction.transforms] A transform of several dimensions is made of several, and each reorders the memory.
/// A result of these sizes, as one transform over `dimensions` leaves it: they
/// come last in memory, and the others in the order of the input.
at::Tensor transformed(const at::Tensor& input, const Dimensions& dimensions,
                       const at::Tensor& result) {
  Dimensions order;
  for (int64_t d = 0; d < input.dim(); ++d)
    if (std::find(dimensions.begin(), dimensions.end(), d) == dimensions.end())
      order.push_back(d);
  sortByStride(input, order.begin(), order.end());
  order.insert(order.end(), dimensions.begin(), dimensions.end());
  return at::empty_permuted(result.sizes(), order, result.options());
}

/// As the CPU transforms, on which a fake tensor of our device relies too.
at::Tensor transformedAsOnCpu(std::string_view name, at::Tensor input,
                              Dimensions dimensions, const at::Tensor& result) {
  const bool to_real = name == "aten::_fft_c2r";
  if (to_real && dimensions.size() > 1) {
    const int64_t last = dimensions.back();
    dimensions.pop_back();
    input = transformedAsOnCpu("aten::_fft_c2c", input, dimensions, input);
    dimensions = {last};
  }
  const bool last_stays = name == "aten::_fft_r2c";
  sortByStride(input, dimensions.begin(), dimensions.end() - last_stays);
  return transformed(input, dimensions, result);
}

// [common.correction.losses] A loss of a single sample has no dimensions, and its memory does not follow the target's.
bool correctLoss(std::string_view name, const Stack& arguments,
                 Stack& results) {
  const auto dim = [&](size_t i) { return arguments[i].toTensor().dim(); };
  const auto isReduced = [&](size_t i) {
    return arguments[i].toInt() != at::Reduction::None;
  };
  if (name.find("loss") == name.npos && name.find("entropy") == name.npos)
    return false;
  const at::Tensor result = results[0].toTensor();
  if (name == "aten::huber_loss" || name == "aten::binary_cross_entropy") {
    results[0] = result.to(typeOf(arguments[0]));
  } else if (name == "aten::binary_cross_entropy_backward") {
    results[0] = result.to(typeOf(arguments[1]));
  } else if (name == "aten::multilabel_margin_loss_forward" && dim(0) < 2) {
    results[0] = result.new_empty({});
    results[1] = result.new_empty(arguments[1].toTensor().sizes());
  } else if (name == "aten::multi_margin_loss" && dim(1) == 0 &&
             !isReduced(5)) {
    results[0] = result.new_empty({});
  } else if (name == "aten::nll_loss2d_forward" && !isReduced(3)) {
    results[0] = result.contiguous();
  } else {
    return false;
  }
  return true;
}

// [common.correction.strides] The rounded quotient has the memory format of the exact one.
bool correctStrides(std::string_view name, const Stack& arguments,
                    Stack& results) {
  if (name == "aten::angle" && arguments[0].toTensor().is_complex()) {
    results[0] = results[0].toTensor().contiguous();
  } else if (name.ends_with("_pad2d")) {
    results[0] = results[0].toTensor().contiguous(
        arguments[0].toTensor().suggest_memory_format());
  } else if (name == "aten::floor_divide" &&
             results[0].toTensor().is_floating_point()) {
    static const c10::OperatorHandle divide =
        c10::Dispatcher::singleton().findSchemaOrThrow("aten::div",
                                                       "Tensor_mode");
    results = predict(divide, {arguments[0], arguments[1], "floor"});
  } else {
    return false;
  }
  return true;
}

}  // namespace

// [common.correction.correct] Twelve Meta kernels describe results that no device returns.
void correct(const c10::OperatorHandle& op, const Stack& arguments,
             Stack& results) {
  const std::string_view name = op.schema().name();
  if (correctLoss(name, arguments, results) ||
      correctStrides(name, arguments, results))
    return;
  if (name == "aten::_native_multi_head_attention") {
    const auto need = *op.schema().argumentIndexWithName("need_weights");
    const bool empty = arguments[0].toTensor().numel() == 0;
    if (empty || !arguments[need].toBool()) results[1] = at::Tensor();
  } else if (name == "aten::isin" && arguments[0].isScalar()) {
    results[0] = results[0].toTensor().new_empty({});
  } else if (name.starts_with("aten::_embedding_bag") && results.size() == 4) {
    const at::ScalarType widest =
        at::promoteTypes(typeOf(arguments[1]), typeOf(arguments[2]));
    for (size_t i = 1; i < results.size(); ++i)
      results[i] = results[i].toTensor().to(widest);
  } else if (name == "aten::addr") {
    // The summand is expanded first, so it counts as a matrix.
    const auto vectors =
        at::promoteTypes(typeOf(arguments[1]), typeOf(arguments[2]));
    results[0] = results[0].toTensor().to(
        at::promoteTypes(typeOf(arguments[0]), vectors));
  } else if (name == "aten::addmm" || name == "aten::_addmm_activation") {
    checkSummand(arguments[0].toTensor(), results[0].toTensor().sizes());
  } else if (name == "aten::nansum") {
    const auto dims = arguments[1].toOptional<std::vector<int64_t>>();
    const int64_t kept =
        arguments[2].toBool() ? arguments[0].toTensor().dim() : 0;
    if (dims && dims->empty())
      results[0] = results[0].toTensor().new_empty(Dimensions(kept, 1));
  } else if (name.starts_with("aten::_fft_")) {
    const at::Tensor& input = arguments[0].toTensor();
    const auto dimensions = arguments[1].toIntVector();
    if (at::hasMKL() && !dimensions.empty())
      results[0] =
          transformedAsOnCpu(name, input, dimensions, results[0].toTensor());
  }
}

// [common.correction.accept] PyTorch's Meta functions refuse truth values that its kernels take, as a condition of uint8 and as an operand of a shift, and forms of a target and of weights.
void accept(const c10::OperatorHandle& op, Stack& arguments) {
  const std::string_view name = op.schema().name();
  if (name == "aten::where") {
    const at::Tensor condition = arguments[0].toTensor();
    if (condition.scalar_type() == at::kByte)
      arguments[0] = condition.to(at::kBool);
  } else if (name == "aten::multilabel_margin_loss_forward") {
    const at::Tensor self = arguments[0].toTensor();
    const at::Tensor target = arguments[1].toTensor();
    if (self.dim() < 2 && target.dim() < 2 && self.numel() == target.numel())
      arguments[1] = target.view(self.sizes());
  } else if (name.starts_with("aten::nll_loss2d_")) {
    c10::IValue& weight =
        arguments[*op.schema().argumentIndexWithName("weight")];
    if (!weight.isNone()) weight = weight.toTensor().flatten();
  } else if (name == "aten::nll_loss_forward") {
    const bool has_weight = !arguments[2].isNone();
    TORCH_CHECK(!has_weight || typeOf(arguments[2]) == typeOf(arguments[0]),
                "expected scalar type ", typeOf(arguments[0]), " but found ",
                typeOf(arguments[2]));
  } else if (name.ends_with("shift__")) {
    const at::Tensor self = arguments[0].toTensor();
    const auto type = arguments[1].isTensor()
                          ? at::result_type(self, arguments[1].toTensor())
                          : at::result_type(self, arguments[1].toScalar());
    for (c10::IValue& operand : arguments)
      if (operand.isTensor() && operand.toTensor().scalar_type() == at::kBool)
        operand = operand.toTensor().to(type);
  }
}

bool hasCudaOnlyAlert(const c10::OperatorHandle& op) {
  const std::string_view name = op.schema().name();
  return name == "aten::median" || name == "aten::nanmedian" ||
         name == "aten::mode";
}

// [-]
}  // namespace openreg
