// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/Context.h>

namespace openreg {

// [fallback.attention] Without a fused kernel, the setting for it starts switched off, and PyTorch composes attention.
[[maybe_unused]] static const bool fused_is_off = [] {
  at::globalContext().setSDPUseOverrideable(false);
  return true;
}();

// [-]
}  // namespace openreg
