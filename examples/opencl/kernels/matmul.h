// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/examples/opencl/kernels/program.h"

#include <c10/core/Scalar.h>

namespace openreg {

// [opencl.matmul] One function serves all products, because strides describe transposed, broadcast and batched operands alike.
/// out = beta * c + alpha * a @ b, for tensors [batch, row, column] of one
/// floating dtype. `c` has the sizes of `out`, and may be `out`; it is not read
/// if `beta` is 0.
void multiply(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b,
              const at::Tensor& c, double beta, double alpha);

// [-]
}  // namespace openreg
