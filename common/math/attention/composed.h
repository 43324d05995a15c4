// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/math/interface/openreg_attention.h"

namespace openreg::math {

// [common.math.attention.composed] Calls that flash attention does not support are composed of matrix products, on the device.
/// Both must run on the device.
void attentionComposed(const AttentionCall& call, const AttentionInputs& inputs,
                       const AttentionResults& results);

/// Writes the gradients; draws the random numbers of the forward pass again.
void attentionBackwardComposed(const AttentionCall& call,
                               const AttentionInputs& inputs,
                               const AttentionResults& results,
                               const at::Tensor& grad_output,
                               const AttentionGradients& gradients);

// [-]
}  // namespace openreg::math
