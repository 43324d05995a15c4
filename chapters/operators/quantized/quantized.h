// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/operators/sparse/sparse.h"

#include <ATen/core/Tensor.h>

namespace openreg {

// [operators.quantized.integers] Below its quantizer, a quantized tensor is a tensor of integers.
/// A dense tensor over the same memory, on the host or on a device.
/// @throws c10::NotImplementedError unless `quantized` is of qint8, quint8 or
/// qint32.
at::Tensor integersOf(const at::Tensor& quantized);

// [operators.quantized.engine] For one engine, PyTorch allocates quantized tensors on the CPU, whatever their device.
/// @throws c10::NotImplementedError if that is the engine, and no argument says
/// that the result is to be on the host.
void checkEngine(const torch::jit::Stack& arguments);

/// As `callTheirs`, for operators that make a quantized tensor.
template <c10::DispatchKey key>
void makeByTheirs(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  checkEngine(*stack);
  callAt(key, op, stack);
}

// [-]
}  // namespace openreg
