// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/operators/copy_kernel.h"
#include "chapters/operators/launcher.h"

namespace openreg {

// [operators.copy.kernel] A copy that changes more than the place of bytes is a kernel.
void launchConversion(const at::Tensor& to, const at::Tensor& from) {
  const auto convert = [](at::Tensor to, const at::Tensor& from) {
    // The CPU negates after it has converted, and not all types can be negated.
    to.copy_(from.scalar_type() == to.scalar_type() ? from
                                                    : from.resolve_neg());
  };
  launchKernel("copy_", convert, to, from);
}

// [-]
}  // namespace openreg
