// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/differences.h"

#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace openreg {
namespace {

// [amp.fallthrough] Operators without a rule run as if autocast were off.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

// [amp.ban] One operator is refused: its gradient overflows in float16.
at::Tensor bannedBinaryCrossEntropy(const at::Tensor&, const at::Tensor&,
                                    const std::optional<at::Tensor>&, int64_t) {
  TORCH_CHECK(false,
              "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss "
              "are unsafe to autocast.\n"
              "Many models use a sigmoid layer right before the binary cross "
              "entropy layer.\n"
              "In this case, combine the two layers using "
              "torch.nn.functional.binary_cross_entropy_with_logits\n"
              "or torch.nn.BCEWithLogitsLoss.  "
              "binary_cross_entropy_with_logits and BCEWithLogits are\n"
              "safe to autocast.");
}

// [-]
}  // namespace
}  // namespace openreg

// [amp.macros] PyTorch's lists take a macro of one to three arguments; ours adds the policy.
#define OPENREG_LOWER_PRECISION(...) \
  KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define OPENREG_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define OPENREG_FP32_SET_OPT_DTYPE(...) \
  KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define OPENREG_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

namespace at::autocast {

// [amp.register] PyTorch's own lists register all rules but one, which PyTorch gives to CUDA and the CPU only.
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  AT_FORALL_LOWER_PRECISION_FP(OPENREG_LOWER_PRECISION)
  AT_FORALL_FP32(OPENREG_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(OPENREG_FP32_SET_OPT_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(
      KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(OPENREG_PROMOTE)
  OPENREG_FORALL_FP32_NOT_LISTED(OPENREG_FP32)
  m.impl("binary_cross_entropy", &openreg::bannedBinaryCrossEntropy);
}

// [-]
}  // namespace at::autocast
