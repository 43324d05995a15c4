// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>

namespace openreg {

// [operators.attention.call] Arguments that are not tensors are captured by value.
struct AttentionCall {
  double dropout;  ///< the probability that a weight becomes 0
  bool causal;     ///< whether a query sees only the keys up to its own
  double scale;    ///< of the scores, before the softmax

  /// Whether the CPU's flash attention supports the call.
  bool isFlash(const at::Tensor& query, const at::Tensor& value) const {
    return dropout == 0 && query.size(-1) == value.size(-1) &&
           query.numel() > 0;
  }
};

/// The random numbers of one call: two tensors on the device, so that the
/// backward pass draws the same numbers, and only the device reads them.
struct DropoutState {
  at::Tensor seed;    ///< int64, one element
  at::Tensor offset;  ///< int64, one element
};

// [operators.attention.composed] Calls that flash attention does not support are composed of matrix products, on the device.
/// Both must run on the device. The tensors have four dimensions; `bias` may be
/// undefined, and is expandable to the scores.
void attentionComposed(const AttentionCall& call, const DropoutState& state,
                       const at::Tensor& output, const at::Tensor& logsumexp,
                       const at::Tensor& query, const at::Tensor& key,
                       const at::Tensor& value, const at::Tensor& bias);

/// With the shapes of the inputs.
struct AttentionGradients {
  at::Tensor query;  ///< never undefined
  at::Tensor key;    ///< never undefined
  at::Tensor value;  ///< never undefined
  at::Tensor bias;   ///< undefined if it is not wanted
};

/// Writes the gradients; draws the random numbers of the forward pass again.
void attentionBackwardComposed(const AttentionCall& call,
                               const DropoutState& state,
                               const AttentionGradients& gradients,
                               const at::Tensor& grad_output,
                               const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value, const at::Tensor& bias);

// [-]
}  // namespace openreg
