// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/minimal/copy_kernel.h"
#include "torch_openreg/chapters/operators/launch/launcher.h"

namespace openreg {

// [operators.copy.kernel] Where copying bytes is not enough, the device runs the CPU's `copy_`.
void launchConversion(const at::Tensor& to, const at::Tensor& from) {
  const auto convert = [](at::Tensor to, const at::Tensor& from) {
    // The CPU converts first and negates then, and not every dtype has a
    // negative.
    to.copy_(from.scalar_type() == to.scalar_type() ? from
                                                    : from.resolve_neg());
  };
  launchKernel("copy_", convert, to, from);
}

// [-]
}  // namespace openreg
