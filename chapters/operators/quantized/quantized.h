// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>

namespace openreg {

// [operators.quantized.integers] Below its quantizer, a quantized tensor is a tensor of integers.
/// A dense tensor over the same memory, on the host or on a device.
/// @throws c10::NotImplementedError unless `quantized` is of qint8, quint8 or
/// qint32.
at::Tensor integersOf(const at::Tensor& quantized);

// [-]
}  // namespace openreg
