// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/examples/opencl/kernels/program.h"

#include <ATen/TensorIterator.h>
#include <c10/core/Scalar.h>

namespace openreg {

// [opencl.elementwise] An elementwise kernel is a formula over an iterator, which has already checked, promoted and broadcast the operands.
/// Whether `launchFormula` can compute in `dtype` over `iterator`.
bool canLaunch(const at::TensorIteratorBase& iterator, at::ScalarType dtype);

/// Sets the output of `iterator` to `formula`, computed in the type for
/// `dtype`. `formula` must be a literal: its address is part of a key.
void launchFormula(const at::TensorIteratorBase& iterator, at::ScalarType dtype,
                   const char* formula, const c10::Scalar& s = 0,
                   const c10::Scalar& t = 0);

// [-]
}  // namespace openreg
