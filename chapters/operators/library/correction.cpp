// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/library/correction.h"

#include <ATen/core/Tensor.h>

#include <string>
#include <unordered_map>

namespace openreg {

using Stack = torch::jit::Stack;

// [operators.correction.norms] The Meta kernels of norms return the statistics that CUDA saves for the backward pass.
namespace {

/// The dtype of the statistics and of the parameters' gradients in the CPU's
/// kernels: that of the input, unless a parameter is wider.
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

/// The statistics are the second and third result. In evaluation mode, the
/// CPU's batch norm saves none.
void correctNorm(const c10::OperatorHandle& op, const Stack& arguments,
                 Stack& results) {
  const bool evaluation = results.size() == 3 && arguments.size() > 5 &&
                          op.schema().arguments()[5].name() == "training" &&
                          !arguments[5].toBool();
  for (size_t i : {1, 2}) {
    const at::Tensor statistic =
        results[i].toTensor().to(parameterType(arguments));
    results[i] = evaluation ? statistic.new_empty({0}) : statistic;
  }
}

// [operators.correction.gradients] Gradients masked out by output_mask are undefined tensors, as on the CPU.
void correctBatchNormBackward(const c10::OperatorHandle& op,
                              const Stack& arguments, Stack& results) {
  const auto index = *op.schema().argumentIndexWithName("output_mask");
  const auto output_mask = arguments[index].toBoolList();
  for (size_t i = 0; i < results.size(); ++i) {
    const at::Tensor gradient = results[i].toTensor();
    if (!output_mask[i]) {
      results[i] = at::Tensor();
    } else if (i > 0) {
      results[i] = gradient.to(parameterType(arguments));
    }
  }
}

void correctGroupNormBackward(const c10::OperatorHandle&,
                              const Stack& arguments, Stack& results) {
  const at::Tensor gradient = results[0].toTensor();
  if (gradient.defined())
    results[0] = gradient.to(arguments[1].toTensor().scalar_type());
}

// [operators.correction.others] Attention returns undefined weights unless asked for them; the loss of one sample is a scalar.
void correctAttention(const c10::OperatorHandle& op, const Stack& arguments,
                      Stack& results) {
  const auto need = *op.schema().argumentIndexWithName("need_weights");
  const bool empty = arguments[0].toTensor().numel() == 0;
  if (empty || !arguments[need].toBool()) results[1] = at::Tensor();
}

void correctMarginLoss(const c10::OperatorHandle&, const Stack& arguments,
                       Stack& results) {
  if (arguments[0].toTensor().dim() < 2)
    results[0] = results[0].toTensor().new_empty({});
}

}  // namespace

// [operators.correction.correct] Corrections are listed by name, because neither schema nor tags reveal them.
void correct(const c10::OperatorHandle& op, const Stack& arguments,
             Stack& results) {
  using Correction = void (*)(const c10::OperatorHandle&, const Stack&, Stack&);
  static const auto& known = *new std::unordered_map<std::string, Correction>{
      {"aten::native_layer_norm", &correctNorm},
      {"aten::native_group_norm", &correctNorm},
      {"aten::native_batch_norm", &correctNorm},
      {"aten::_native_batch_norm_legit", &correctNorm},
      {"aten::_batch_norm_with_update", &correctNorm},
      {"aten::native_batch_norm_backward", &correctBatchNormBackward},
      {"aten::batch_norm_backward", &correctBatchNormBackward},
      {"aten::native_group_norm_backward", &correctGroupNormBackward},
      {"aten::_native_multi_head_attention", &correctAttention},
      {"aten::multilabel_margin_loss_forward", &correctMarginLoss},
  };
  const auto found = known.find(op.schema().name());
  if (found != known.end()) found->second(op, arguments, results);
}

bool hasCudaOnlyAlert(const c10::OperatorHandle& op) {
  const std::string& name = op.schema().name();
  return name == "aten::median" || name == "aten::nanmedian" ||
         name == "aten::mode" || name == "aten::histc";
}

// [-]
}  // namespace openreg
