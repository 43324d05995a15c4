// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/math/interface/openreg_math.h"

namespace openreg {

// [operators.binding] One boxed function binds all operators of the math library to PyTorch: ask, allocate, enqueue.
/// Takes the arguments of `primitive` from the stack and leaves its results,
/// which the current stream of their device will compute.
/// @throws what PyTorch throws for arguments that do not fit.
void compute(const math::Primitive& primitive, torch::jit::Stack* stack);

/// A kernel of `op` that calls `compute`; the library must have the operator.
c10::KernelFunction boxedKernel(const c10::OperatorHandle& op);

// [-]
}  // namespace openreg
