// SPDX-License-Identifier: BSD-3-Clause
// Fused attention. A vendor's library takes its place.
#pragma once

#include "torch_openreg/common/math/interface/openreg_random.h"

#include <ATen/core/Tensor.h>

namespace openreg::math {

// [common.math.attention] Attention is one call, whatever the sizes; the scores never leave the kernel.
struct AttentionCall {
  double dropout;  ///< the probability that a weight becomes 0
  bool causal;     ///< whether a query sees only the keys up to its own
  double scale;    ///< of the scores, before the softmax
};

/// The tensors of a call, of one dtype.
struct AttentionInputs {
  at::Tensor query;  ///< (batch, heads, length, width)
  at::Tensor key;    ///< the same; its heads divide the query's
  at::Tensor value;  ///< as many heads and rows as the keys
  at::Tensor bias;   ///< undefined, or expandable to the scores
};

/// What the forward pass writes, and the backward pass reads.
struct AttentionResults {
  at::Tensor output;     ///< of the query's sizes, as wide as the values
  at::Tensor logsumexp;  ///< float32: of each row of scores
  /// int64, one element, as the offset is: on the device, so that the backward
  /// pass draws the same numbers, and only the device reads them.
  at::Tensor seed;
  at::Tensor offset;  ///< int64, one element
};

/// What the backward pass writes: gradients of the sizes of the inputs.
struct AttentionGradients {
  at::Tensor query;  ///< never undefined
  at::Tensor key;    ///< never undefined
  at::Tensor value;  ///< never undefined
  at::Tensor bias;   ///< undefined if it is not wanted
};

// [common.math.attention.phases] The caller allocates the results between the check and the launch.
/// Phase one: PyTorch checks a call of attention, but not a call of the
/// operator behind it.
/// @throws c10::Error for inputs that do not fit together.
void checkAttention(const AttentionInputs& inputs, double dropout);

/// Phase two: enqueues the work on `stream`. Without dropout it uses no random
/// numbers, and with dropout one offset.
void attention(const AttentionCall& call, const AttentionInputs& inputs,
               const AttentionResults& results, const RandomNumbers& numbers,
               orStream_t stream);

/// The same for the gradients; draws the numbers of the forward pass again.
void attentionBackward(const AttentionCall& call, const AttentionInputs& inputs,
                       const AttentionResults& results,
                       const at::Tensor& grad_output,
                       const AttentionGradients& gradients, orStream_t stream);

// [-]
}  // namespace openreg::math
