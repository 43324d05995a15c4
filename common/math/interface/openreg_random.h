// SPDX-License-Identifier: BSD-3-Clause
// The random numbers of the math library. A vendor's library, such as cuRAND,
// takes its place.
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>

namespace openreg::math {

// [common.math.random.numbers] The caller's generator says where in a sequence a call begins.
/// Number i of a call depends on `seed`, `offset` and i alone. One offset
/// provides 64 random bits for every i.
struct RandomNumbers {
  uint64_t seed;    ///< names a sequence
  uint64_t offset;  ///< where in the sequence, from 0
  /// If not null: the device address of a seed and an offset. The kernel reads
  /// them when it runs, and adds its own offset to the one that it finds there.
  const uint64_t* base = nullptr;
};

// [common.math.random.draw] A draw is one call between its two phases: checked, with the number of offsets that it needs.
struct Draw {
  /// How many offsets the call uses, whatever the number of elements. No other
  /// call may get them.
  uint64_t offsets;
  /// Phase two: enqueues the work on a stream.
  std::function<void(const RandomNumbers&, orStream_t)> enqueue;
};

// [common.math.random] Phase one checks dtypes and bounds, because a kernel would refuse them late.
/// Uniform numbers from `from` up to, and without, `to`. Each of these
/// functions fills `out`, which must be on a device of ours.
/// @throws c10::NotImplementedError for a dtype without a formula; c10::Error
/// for parameters that define no distribution, or that the dtype cannot hold.
Draw uniform(const at::Tensor& out, double from, double to);
/// Normal numbers; half of the variance in each part of a complex one.
Draw normal(const at::Tensor& out, double mean, double std);
/// Integers from `from` up to, and without, `to`. Without `to`, the bound is
/// the largest n for which the dtype holds every integer up to n.
Draw integers(const at::Tensor& out, int64_t from, std::optional<int64_t> to);
/// The same from 0 and without `to`, which has fewer dtypes.
Draw anyIntegers(const at::Tensor& out);
/// One with probability `p`, otherwise zero.
Draw bernoulli(const at::Tensor& out, double p);
/// Times between events of rate `lambda`; never zero.
Draw exponential(const at::Tensor& out, double lambda);
/// Symmetric about `median`, with half of all numbers within `sigma` of it.
Draw cauchy(const at::Tensor& out, double median, double sigma);
/// Numbers whose logarithm is normal.
Draw logNormal(const at::Tensor& out, double mean, double std);
/// The number of trials until one of probability `p` succeeds, from 1.
Draw geometric(const at::Tensor& out, double p);
/// The integers below `n`, each once; resizes `out`.
Draw permutation(const at::Tensor& out, int64_t n);

// [common.math.random.each] Only the kernel sees the values of parameters in tensors, so it refuses wrong ones late.
/// How many events of this rate happen. As in the two functions after it,
/// every element of `out` has parameters of its own, in tensors of its dtype
/// that are expandable to it.
/// @throws c10::Error for a wrong dtype.
Draw poisson(const at::Tensor& out, const at::Tensor& rate);
/// How many of `count` trials of this probability succeed.
Draw binomial(const at::Tensor& out, const at::Tensor& count,
              const at::Tensor& probability);
/// Never zero, whatever `alpha` is.
Draw standardGamma(const at::Tensor& out, const at::Tensor& alpha);

/// @throws c10::NotImplementedError unless the dtype is floating point of more
/// than eight bits; `with_complex` allows complex dtypes too.
void checkFloating(const char* name, const at::Tensor& self,
                   bool with_complex = false);

// [-]
}  // namespace openreg::math
