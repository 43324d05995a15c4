// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/random/samplers.h"
#include "torch_openreg/common/math/attention/composed.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_safe_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <limits>

namespace openreg::math {
namespace {

// [common.math.attention.composed.block] The kernel computes one block of the batch at a time, so it never stores the scores of all examples.
constexpr int64_t kScoresPerBlock = 1 << 21;

struct Block {
  int64_t first, count;  ///< examples of the batch
  at::Tensor query, key, value;

  at::Tensor of(const at::Tensor& tensor) const {
    return tensor.narrow(0, first, count);
  }
};

/// Calls `body` with blocks in the precision in which sums are computed. Keys
/// and values are repeated for the queries that share them.
template <class Body>
void forEachTile(const AttentionInputs& inputs, Body body) {
  const auto& [query, key, value, bias] = inputs;
  const auto precise = at::toOpMathType(query.scalar_type());
  const int64_t scores =
      std::max<int64_t>(1, query.size(1) * query.size(2) * key.size(2));
  const int64_t count = std::max<int64_t>(1, kScoresPerBlock / scores);
  for (int64_t first = 0; first < query.size(0); first += count) {
    Block block{first, std::min(count, query.size(0) - first), {}, {}, {}};
    const auto shared = [&](const at::Tensor& tensor) {
      const int64_t queries = query.size(1) / tensor.size(1);
      const at::Tensor part = block.of(tensor).to(precise);
      return queries == 1 ? part : part.repeat_interleave(queries, 1);
    };
    block.query = block.of(query).to(precise);
    block.key = shared(key);
    block.value = shared(value);
    body(block);
  }
}

// [common.math.attention.composed.scores] A causal query sees the keys up to its own position.
at::Tensor scoresOf(const AttentionCall& call, const Block& block,
                    const at::Tensor& bias) {
  at::Tensor scores =
      (block.query * call.scale).matmul(block.key.transpose(-2, -1));
  if (bias.defined())
    scores += bias.dim() == 4 && bias.size(0) > 1 ? block.of(bias) : bias;
  if (call.causal) {
    const auto sizes = scores.sizes().slice(2);
    scores.masked_fill_(at::ones(sizes, at::kBool).triu_(1),
                        -std::numeric_limits<double>::infinity());
  }
  return scores;
}

// [common.math.attention.composed.dropout] Weight i is kept as `bernoulli_` would keep it, so any block and either pass can draw it again.
/// Zero for a weight that is dropped, and otherwise the factor that makes up
/// for the dropped ones; undefined without dropout.
at::Tensor dropoutFactors(const AttentionCall& call,
                          const AttentionResults& state, const Block& block,
                          const at::Tensor& weights) {
  if (call.dropout == 0) return {};
  at::Tensor factors = at::empty_like(weights);
  const RandomNumbers numbers{
      static_cast<uint64_t>(state.seed.item<int64_t>()),
      static_cast<uint64_t>(state.offset.item<int64_t>())};
  const int64_t first = block.first * weights[0].numel();
  const double keep = 1 - call.dropout;
  AT_DISPATCH_FLOATING_TYPES(factors.scalar_type(), "attention", [&] {
    fillEach<scalar_t>(factors, [&](int64_t i) -> scalar_t {
      const uint64_t bits = randomBits(numbers, first + i);
      return unitInterval<double>(bits) < keep ? 1 / keep : 0;
    });
  });
  return factors;
}

// [common.math.attention.composed.forward] A query whose keys are all masked gets zeros.
}  // namespace

void attentionComposed(const AttentionCall& call, const AttentionInputs& inputs,
                       const AttentionResults& results) {
  forEachTile(inputs, [&](const Block& block) {
    const at::Tensor scores = scoresOf(call, block, inputs.bias);
    at::Tensor weights = at::_safe_softmax(scores, -1);
    const at::Tensor factors = dropoutFactors(call, results, block, weights);
    if (factors.defined()) weights *= factors;
    block.of(results.output).copy_(weights.matmul(block.value));
    block.of(results.logsumexp).copy_(scores.logsumexp(-1));
  });
}

// [common.math.attention.composed.backward] The weights are computed again, and the gradients of shared keys and values are added up.
void attentionBackwardComposed(const AttentionCall& call,
                               const AttentionInputs& inputs,
                               const AttentionResults& results,
                               const at::Tensor& grad_output,
                               const AttentionGradients& gradients) {
  const at::Tensor& bias = inputs.bias;
  const auto precise = at::toOpMathType(inputs.query.scalar_type());
  at::Tensor of_bias;
  if (gradients.bias.defined()) of_bias = at::zeros_like(bias, precise);
  forEachTile(inputs, [&](const Block& block) {
    const auto write = [&](const at::Tensor& to, const at::Tensor& from) {
      const int64_t heads = to.size(1), queries = from.size(1) / heads;
      block.of(to).copy_(from.unflatten(1, {heads, queries}).sum(2));
    };
    at::Tensor weights = at::_safe_softmax(scoresOf(call, block, bias), -1);
    const at::Tensor factors = dropoutFactors(call, results, block, weights);
    const at::Tensor kept = factors.defined() ? weights * factors : weights;
    const at::Tensor grad = block.of(grad_output).to(precise);
    write(gradients.value, kept.transpose(-2, -1).matmul(grad));
    at::Tensor of_weights = grad.matmul(block.value.transpose(-2, -1));
    if (factors.defined()) of_weights *= factors;
    const at::Tensor of_scores =
        at::_softmax_backward_data(of_weights, weights, -1, precise);
    if (of_bias.defined()) {
      const bool each = of_bias.dim() == 4 && of_bias.size(0) > 1;
      const at::Tensor to = each ? block.of(of_bias) : of_bias;
      to.add_(of_scores.sum_to_size(to.sizes()));
    }
    write(gradients.query, of_scores.matmul(block.key) * call.scale);
    write(gradients.key,
          of_scores.transpose(-2, -1).matmul(block.query) * call.scale);
  });
  if (of_bias.defined()) gradients.bias.copy_(of_bias);
}

// [-]
}  // namespace openreg::math
