// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/minimal/copy_kernel.h"
#include "torch_openreg/chapters/operators/launch/launcher.h"

namespace openreg {

// [operators.copy.kernel] Where copying bytes is not enough, the device runs the CPU's `copy_`.
void launchConversion(const at::Tensor& to, const at::Tensor& from) {
  launchKernel("copy_", copyOnCpu, to, from);
}

// [-]
}  // namespace openreg
