// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/autocast_mode.h>
#include <torch/library.h>

// [first.autocast.fallthrough] An operator without a rule runs as if there were no autocast.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

namespace at::autocast {

// [first.autocast.rules] Products run in lower precision; a loss that takes logarithms does not.
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  KERNEL_PRIVATEUSEONE(linear, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(conv2d, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(cross_entropy_loss, fp32)
}

// [-]
}  // namespace at::autocast
