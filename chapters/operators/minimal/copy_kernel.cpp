// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/minimal/copy_kernel.h"
#include "torch_openreg/chapters/operators/launch/launcher.h"

namespace openreg {

// [operators.copy.kernel] Where copying bytes is not enough, the device runs the CPU's `copy_`.
void launchConversion(const at::Tensor& to, const at::Tensor& from) {
  const auto convert = [](at::Tensor to, const at::Tensor& from) {
    if (from.scalar_type() == to.scalar_type()) return void(to.copy_(from));
    // The CPU converts first and negates then, and not every dtype has a
    // negative. From float16 to float32 it forgets to negate.
    const at::Tensor resolved = from.resolve_neg();
    to.copy_(to.is_neg() ? resolved.to(to.scalar_type()) : resolved);
  };
  launchKernel("copy_", convert, to, from);
}

// [-]
}  // namespace openreg
