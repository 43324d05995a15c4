// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/random/random.h"

#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/ExpandUtils.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>
#include <limits>
#include <random>

namespace openreg {
namespace {

using MaybeGenerator = std::optional<at::Generator>;

// [operators.distributions.engine] One engine for each element lets a distribution draw as many numbers as it needs.
/// How many offsets an element may use. A distribution that rejects samples
/// takes more than one number, but seldom more than ten.
constexpr uint64_t kOffsetsPerElement = 1 << 16;

struct Engine {
  using result_type = uint32_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~uint32_t{0}; }
  result_type operator()() { return philox(); }

  at::Philox4_32 philox;
};

Engine engineOf(RandomState state, int64_t i) {
  return {at::Philox4_32(state.seed, static_cast<uint64_t>(i), state.offset)};
}

// [operators.distributions.fill] Every element is a sample of the same distribution.
/// `draw(engine)` returns a double, which is converted to the dtype of `self`.
template <class Draw>
at::Tensor& drawInto(const char* name, at::Tensor& self,
                     const MaybeGenerator& generator, Draw draw) {
  checkReal(name, self, /*with_bool=*/false);
  launchKernel(
      name,
      [draw,
       range = reserve(self, generator, kOffsetsPerElement)](at::Tensor self) {
        const RandomState state = onDevice(range);
        AT_DISPATCH_V2(self.scalar_type(), "random", AT_WRAP([&] {
                         fillEach<scalar_t>(self, [&](int64_t i) {
                           Engine engine = engineOf(state, i);
                           return static_cast<scalar_t>(draw(engine));
                         });
                       }),
                       AT_EXPAND(AT_ALL_TYPES), at::kHalf, at::kBFloat16);
      },
      self);
  return self;
}

/// The smallest positive normal number of the tensor's dtype.
double smallestPositive(const at::Tensor& self) {
  double least = 0;
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, self.scalar_type(), "random", [&] {
        least = static_cast<double>(std::numeric_limits<scalar_t>::min());
      });
  return least;
}

// [operators.distributions.continuous] Scalar parameters are on the host, so they are checked before the launch.
at::Tensor& exponential(at::Tensor& self, double lambda,
                        MaybeGenerator generator) {
  checkFloating("exponential_", self);
  TORCH_CHECK(lambda > 0, "exponential_ needs lambd > 0; it is ", lambda, ".");
  return drawInto("exponential_", self, generator,
                  [lambda, least = smallestPositive(self)](Engine& engine) {
                    // Never zero, because callers divide by it.
                    const double time =
                        std::exponential_distribution(1.)(engine) / lambda;
                    return std::max(time, least);
                  });
}

at::Tensor& cauchy(at::Tensor& self, double median, double sigma,
                   MaybeGenerator generator) {
  checkFloating("cauchy_", self);
  TORCH_CHECK(sigma > 0, "cauchy_ needs sigma > 0; it is ", sigma, ".");
  return drawInto("cauchy_", self, generator, [=](Engine& engine) {
    return std::cauchy_distribution(median, sigma)(engine);
  });
}

at::Tensor& logNormal(at::Tensor& self, double mean, double std,
                      MaybeGenerator generator) {
  checkFloating("log_normal_", self);
  TORCH_CHECK(std > 0, "log_normal_ needs std > 0; it is ", std, ".");
  return drawInto("log_normal_", self, generator, [=](Engine& engine) {
    return std::lognormal_distribution(mean, std)(engine);
  });
}

// [operators.distributions.geometric] Inversion in floating point gives results of any size, where `<random>` stops at its largest integer.
at::Tensor& geometric(at::Tensor& self, double p, MaybeGenerator generator) {
  TORCH_CHECK(0 < p && p < 1, "geometric_ needs 0 < p < 1; it is ", p, ".");
  return drawInto("geometric_", self, generator, [p](Engine& engine) {
    const double u = std::uniform_real_distribution(0., 1.)(engine);
    return std::max(1., std::ceil(std::log1p(-u) / std::log1p(-p)));
  });
}

// [operators.distributions.each] Every element may have parameters of its own, in tensors on the device.
/// Calls `draw(engine, a, b)` for each pair of elements, after broadcasting.
template <class Draw>
at::Tensor drawEach(const char* name, const at::Tensor& a, const at::Tensor& b,
                    const MaybeGenerator& generator, Draw draw) {
  checkFloating(name, a);
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), name,
              " needs parameters of one type; they are ", a.scalar_type(),
              " and ", b.scalar_type(), ".");
  at::Tensor out =
      at::empty(at::infer_size(a.sizes(), b.sizes()),
                a.options().device(kDeviceType, commonDevice(name, a, b)));
  launchKernel(
      name,
      [draw, range = reserve(out, generator, kOffsetsPerElement)](
          at::Tensor out, const at::Tensor& a, const at::Tensor& b) {
        const RandomState state = onDevice(range);
        const at::Tensor first = a.expand(out.sizes()).contiguous();
        const at::Tensor second = b.expand(out.sizes()).contiguous();
        AT_DISPATCH_V2(out.scalar_type(), "random", AT_WRAP([&] {
                         const auto* one = first.const_data_ptr<scalar_t>();
                         const auto* two = second.const_data_ptr<scalar_t>();
                         fillEach<scalar_t>(out, [&](int64_t i) {
                           Engine engine = engineOf(state, i);
                           const double drawn =
                               draw(engine, static_cast<double>(one[i]),
                                    static_cast<double>(two[i]));
                           return static_cast<scalar_t>(drawn);
                         });
                       }),
                       AT_EXPAND(AT_FLOATING_TYPES), at::kHalf, at::kBFloat16);
      },
      out, a, b);
  return out;
}

// [operators.distributions.parameters] Only the kernel sees the values of these parameters, so a wrong one is refused late.
/// Beyond this, doubles begin to skip integers, and the normal distribution is
/// as exact as they are.
constexpr double kLargestCount = 1e15;

double normalApproximation(Engine& engine, double mean, double variance) {
  if (!std::isfinite(mean)) return mean;
  return std::round(
      std::normal_distribution(mean, std::sqrt(variance))(engine));
}

at::Tensor poisson(const at::Tensor& self, MaybeGenerator generator) {
  return drawEach("poisson", self, self, generator,
                  [](Engine& engine, double rate, double) -> double {
                    TORCH_CHECK(rate >= 0, "poisson needs rates >= 0; one is ",
                                rate, ".");
                    if (rate == 0) return 0;
                    if (rate > kLargestCount)
                      return normalApproximation(engine, rate, rate);
                    return std::poisson_distribution<int64_t>(rate)(engine);
                  });
}

at::Tensor binomial(const at::Tensor& count, const at::Tensor& probability,
                    MaybeGenerator generator) {
  return drawEach(
      "binomial", count, probability, generator,
      [](Engine& engine, double n, double p) -> double {
        TORCH_CHECK(n >= 0 && 0 <= p && p <= 1,
                    "binomial needs counts >= 0 and probabilities from 0 to 1; "
                    "one pair is ",
                    n, " and ", p, ".");
        if (n > kLargestCount)
          return normalApproximation(engine, n * p, n * p * (1 - p));
        return std::binomial_distribution(static_cast<int64_t>(n), p)(engine);
      });
}

// [operators.distributions.gamma] Results stay above zero, because callers take their logarithm.
at::Tensor standardGamma(const at::Tensor& self, MaybeGenerator generator) {
  checkFloating("_standard_gamma", self);
  return drawEach(
      "_standard_gamma", self, self, generator,
      [least = smallestPositive(self)](Engine& engine, double alpha, double) {
        // As on the CPU, zero and NaN give the smallest number that has a
        // logarithm.
        if (!(alpha > 0)) return least;
        return std::max(std::gamma_distribution(alpha)(engine), least);
      });
}

at::Tensor dirichlet(const at::Tensor& self, MaybeGenerator generator) {
  at::Tensor gamma = standardGamma(self, std::move(generator));
  return gamma.div_(gamma.sum(-1, true));
}

// [operators.distributions.register] PyTorch derives the other forms of these operators.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("exponential_", &exponential);
  m.impl("cauchy_", &cauchy);
  m.impl("log_normal_", &logNormal);
  m.impl("geometric_", &geometric);
  m.impl("poisson", &poisson);
  m.impl("binomial", &binomial);
  m.impl("_standard_gamma", &standardGamma);
  m.impl("_sample_dirichlet", &dirichlet);
}

// [-]
}  // namespace
}  // namespace openreg
