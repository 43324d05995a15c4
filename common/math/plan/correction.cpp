// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/plan/prediction.h"

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <string_view>

namespace openreg {

using Stack = torch::jit::Stack;

// [common.correction.correct] Six Meta kernels describe results that no device returns.
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
  } else if (name == "aten::isin" && arguments[0].isScalar()) {
    results[0] = results[0].toTensor().new_empty({});
  } else if (name.starts_with("aten::_embedding_bag") && results.size() == 4) {
    const at::ScalarType widest =
        at::promoteTypes(arguments[1].toTensor().scalar_type(),
                         arguments[2].toTensor().scalar_type());
    for (size_t i = 1; i < results.size(); ++i)
      results[i] = results[i].toTensor().to(widest);
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
