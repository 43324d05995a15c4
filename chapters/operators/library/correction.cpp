// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/operators/library/correction.h"

#include <ATen/core/Tensor.h>

#include <string>
#include <unordered_map>

namespace openreg {

using Stack = torch::jit::Stack;

// [operators.correction.norms] The Meta kernels of norms describe what CUDA keeps for the backward pass.
namespace {

/// The type in which the CPU's kernels keep statistics and give the gradients
/// of parameters: that of the input, unless a parameter is wider.
at::ScalarType parameterType(const Stack& arguments) {
  at::ScalarType dtype = arguments[0].toTensor().scalar_type();
  for (const c10::IValue& argument : arguments) {
    if (argument.isTensor() && argument.toTensor().defined() &&
        argument.toTensor().scalar_type() == at::kFloat) {
      dtype = at::promoteTypes(dtype, at::kFloat);
    }
  }
  return dtype;
}

/// The statistics are second and third. In evaluation the CPU's batch norm
/// keeps none.
void asNorm(const c10::OperatorHandle& op, const Stack& arguments,
            Stack& results) {
  const bool evaluates = results.size() == 3 && arguments.size() > 5 &&
                         op.schema().arguments()[5].name() == "training" &&
                         !arguments[5].toBool();
  for (size_t i : {1, 2}) {
    const at::Tensor statistic =
        results[i].toTensor().to(parameterType(arguments));
    results[i] = evaluates ? statistic.new_empty({0}) : statistic;
  }
}

// [operators.correction.gradients] Those of their gradients announce what nobody wants, and other types.
void asBatchNormBackward(const c10::OperatorHandle& op, const Stack& arguments,
                         Stack& results) {
  const auto mask = *op.schema().argumentIndexWithName("output_mask");
  const auto wanted = arguments[mask].toBoolList();
  for (size_t i = 0; i < results.size(); ++i) {
    const at::Tensor gradient = results[i].toTensor();
    if (!wanted[i]) {
      results[i] = at::Tensor();
    } else if (i > 0) {
      results[i] = gradient.to(parameterType(arguments));
    }
  }
}

void asGroupNormBackward(const c10::OperatorHandle&, const Stack& arguments,
                         Stack& results) {
  const at::Tensor gradient = results[0].toTensor();
  if (gradient.defined())
    results[0] = gradient.to(arguments[1].toTensor().scalar_type());
}

// [operators.correction.others] What need not be returned, and what is a number.
void asAttention(const c10::OperatorHandle& op, const Stack& arguments,
                 Stack& results) {
  const auto need = *op.schema().argumentIndexWithName("need_weights");
  const bool empty = arguments[0].toTensor().numel() == 0;
  if (empty || !arguments[need].toBool()) results[1] = at::Tensor();
}

/// Of one sample, where others have a loss for each.
void asMarginLoss(const c10::OperatorHandle&, const Stack& arguments,
                  Stack& results) {
  if (arguments[0].toTensor().dim() < 2)
    results[0] = results[0].toTensor().new_empty({});
}

}  // namespace

// [operators.correction.correct] By name: no rule says it.
void correct(const c10::OperatorHandle& op, const Stack& arguments,
             Stack& results) {
  using Correction = void (*)(const c10::OperatorHandle&, const Stack&, Stack&);
  static const auto& known = *new std::unordered_map<std::string, Correction>{
      {"aten::native_layer_norm", &asNorm},
      {"aten::native_group_norm", &asNorm},
      {"aten::native_batch_norm", &asNorm},
      {"aten::_native_batch_norm_legit", &asNorm},
      {"aten::_batch_norm_with_update", &asNorm},
      {"aten::native_batch_norm_backward", &asBatchNormBackward},
      {"aten::batch_norm_backward", &asBatchNormBackward},
      {"aten::native_group_norm_backward", &asGroupNormBackward},
      {"aten::_native_multi_head_attention", &asAttention},
      {"aten::multilabel_margin_loss_forward", &asMarginLoss},
  };
  const auto found = known.find(op.schema().name());
  if (found != known.end()) found->second(op, arguments, results);
}

bool alertsForCuda(const c10::OperatorHandle& op) {
  const std::string& name = op.schema().name();
  return name == "aten::median" || name == "aten::nanmedian" ||
         name == "aten::mode" || name == "aten::histc";
}

// [-]
}  // namespace openreg
