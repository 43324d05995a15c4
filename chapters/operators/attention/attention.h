// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/native/transformers/sdp_utils_cpp.h>

namespace openreg {

// [operators.attention.fits] What the fused kernel takes is asked twice: when PyTorch chooses, and when a program calls the operator itself.
/// Whether the library's flash attention computes `call`, of dense tensors on
/// the device, and its gradients.
bool fitsKernel(const sdp::sdp_params& call);

// [-]
}  // namespace openreg
