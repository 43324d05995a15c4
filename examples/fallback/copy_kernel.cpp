// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/minimal/copy_kernel.h"

#include "torch_openreg/examples/fallback/conversion.h"

namespace openreg {

// [fallback.conversion.launch] Without a kernel, nothing is handled.
void launchConversion(const at::Tensor& to, const at::Tensor& from) {
  convertByFallback(to, from);
}

// [-]
}  // namespace openreg
