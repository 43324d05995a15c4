// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/plan/correction.h"

#include <ATen/core/Tensor.h>

#include <string_view>

namespace openreg {

using Stack = torch::jit::Stack;

// [common.correction.correct] On every device, attention returns weights only on request, the loss of one sample is a scalar, a Huber loss has the dtype of its input, and a sum over no dimensions is one over all.
void correct(const c10::OperatorHandle& op, const Stack& arguments,
             Stack& results) {
  const std::string_view name = op.schema().name();
  if (name == "aten::_native_multi_head_attention") {
    const auto need = *op.schema().argumentIndexWithName("need_weights");
    const bool empty = arguments[0].toTensor().numel() == 0;
    if (empty || !arguments[need].toBool()) results[1] = at::Tensor();
  } else if (name == "aten::multilabel_margin_loss_forward") {
    if (arguments[0].toTensor().dim() < 2)
      results[0] = results[0].toTensor().new_empty({});
  } else if (name == "aten::huber_loss") {
    results[0] =
        results[0].toTensor().to(arguments[0].toTensor().scalar_type());
  } else if (name == "aten::nansum") {
    const auto dims = arguments[1].toOptional<std::vector<int64_t>>();
    const int64_t kept =
        arguments[2].toBool() ? arguments[0].toTensor().dim() : 0;
    if (dims && dims->empty())
      results[0] =
          results[0].toTensor().new_empty(std::vector<int64_t>(kept, 1));
  }
}

// [common.correction.accept] PyTorch's Meta function refuses a condition of uint8, which its kernels still take as truth values.
void accept(const c10::OperatorHandle& op, Stack& arguments) {
  if (op.schema().name() != "aten::where") return;
  const at::Tensor condition = arguments[0].toTensor();
  if (condition.scalar_type() == at::kByte)
    arguments[0] = condition.to(at::kBool);
}

bool hasCudaOnlyAlert(const c10::OperatorHandle& op) {
  const std::string_view name = op.schema().name();
  return name == "aten::median" || name == "aten::nanmedian" ||
         name == "aten::mode";
}

// [-]
}  // namespace openreg
