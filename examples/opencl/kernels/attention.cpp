// SPDX-License-Identifier: BSD-3-Clause
#include <ATen/Context.h>

namespace openreg {

// [opencl.attention] There is no fused kernel here, so the program's setting for it begins turned off, and PyTorch composes attention.
[[maybe_unused]] static const bool fused_is_off = [] {
  at::globalContext().setSDPUseOverrideable(false);
  return true;
}();

// [-]
}  // namespace openreg
