// SPDX-License-Identifier: BSD-3-Clause
// The random numbers of the math library. A vendor's library, such as cuRAND,
// takes its place.
#pragma once

#include "torch_openreg/common/openreg/interface/openreg.h"

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <cstdint>

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

// [common.math.random.source] A call reserves its numbers between its two phases, when it has been checked and before it is enqueued.
/// What a call gets from its caller.
struct Source {
  /// Gives the call offsets that no other call gets. How many it asks for does
  /// not depend on the number of elements. A call asks once, or throws.
  c10::function_ref<RandomNumbers(uint64_t offsets)> reserve;
  orStream_t stream;  ///< on which the work is enqueued
};

// [common.math.random] The caller has checked the parameters; phase one refuses dtypes, because a kernel would refuse them late.
/// Uniform numbers from `from` up to, and without, `to`. Each of these
/// functions fills `out`, which must be on a device of ours.
/// @throws c10::NotImplementedError for a dtype without a formula.
void uniform(const Source& source, const at::Tensor& out, double from,
             double to);
/// Normal numbers.
void normal(const Source& source, const at::Tensor& out, double mean,
            double std);
/// Integers, of the `count` from `first` on, that the dtype holds.
/// @throws c10::Error if the dtype holds none.
void integers(const Source& source, const at::Tensor& out, uint64_t count,
              int64_t first);
/// Any integers of 64 bits.
void allIntegers(const Source& source, const at::Tensor& out);
/// One with probability `p`, otherwise zero.
void bernoulli(const Source& source, const at::Tensor& out, double p);
/// Times between events of rate `lambda`; never zero.
void exponential(const Source& source, const at::Tensor& out, double lambda);
/// Symmetric about `median`, with half of all numbers within `sigma` of it.
void cauchy(const Source& source, const at::Tensor& out, double median,
            double sigma);
/// Numbers whose logarithm is normal.
void logNormal(const Source& source, const at::Tensor& out, double mean,
               double std);
/// The number of trials until one of probability `p` succeeds, from 1.
void geometric(const Source& source, const at::Tensor& out, double p);
/// The integers below `n`, each once; resizes `out`.
/// @throws c10::Error if the dtype does not have so many.
void permutation(const Source& source, const at::Tensor& out, int64_t n);

// [common.math.random.each] Only the kernel sees the values of parameters in tensors, so it refuses wrong ones late.
/// How many events of this rate happen. As in the two functions after it,
/// every element of `out` has parameters of its own, in tensors of its dtype
/// that are expandable to it.
/// @throws c10::Error for a wrong dtype.
void poisson(const Source& source, const at::Tensor& out,
             const at::Tensor& rate);
/// How many of `count` trials of this probability succeed.
void binomial(const Source& source, const at::Tensor& out,
              const at::Tensor& count, const at::Tensor& probability);
/// Never zero, whatever `alpha` is.
void standardGamma(const Source& source, const at::Tensor& out,
                   const at::Tensor& alpha);

// [-]
}  // namespace openreg::math
