// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/random/samplers.h"

#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace openreg::math {
namespace {

// [common.math.distributions.engine] One engine for each element lets a distribution draw as many numbers as it needs.
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

Engine engineOf(const RandomNumbers& from, int64_t i) {
  return {at::Philox4_32(from.seed, static_cast<uint64_t>(i), from.offset)};
}

// [common.math.distributions.fill] Every element is a sample of the same distribution.
/// `sample(engine)` returns a double, which is converted to the dtype of `out`.
template <class Sample>
Draw drawInto(const char* name, const at::Tensor& out, Sample sample) {
  checkReal(name, out, /*with_bool=*/false);
  const auto kernel = [sample](const RandomNumbers& numbers, at::Tensor out) {
    AT_DISPATCH_V2(out.scalar_type(), "random", AT_WRAP([&] {
                     fillEach<scalar_t>(out, [&](int64_t i) {
                       Engine engine = engineOf(numbers, i);
                       return static_cast<scalar_t>(sample(engine));
                     });
                   }),
                   AT_EXPAND(AT_ALL_TYPES), at::kHalf, at::kBFloat16);
  };
  return drawBy(name, kOffsetsPerElement, kernel, out);
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

}  // namespace

// [common.math.distributions.continuous] Scalar parameters are on the host, so they are checked before the launch.
Draw exponential(const at::Tensor& out, double lambda) {
  checkFloating("exponential_", out);
  TORCH_CHECK(lambda > 0, "exponential_ needs lambd > 0; it is ", lambda, ".");
  return drawInto("exponential_", out,
                  [lambda, least = smallestPositive(out)](Engine& engine) {
                    // Callers divide by it, so only an infinite rate gives 0.
                    const double time =
                        std::exponential_distribution(1.)(engine) / lambda;
                    return std::isinf(lambda) ? 0 : std::max(time, least);
                  });
}

Draw cauchy(const at::Tensor& out, double median, double sigma) {
  checkFloating("cauchy_", out);
  TORCH_CHECK(sigma > 0, "cauchy_ needs sigma > 0; it is ", sigma, ".");
  return drawInto("cauchy_", out, [=](Engine& engine) {
    return std::cauchy_distribution(median, sigma)(engine);
  });
}

Draw logNormal(const at::Tensor& out, double mean, double std) {
  checkFloating("log_normal_", out);
  TORCH_CHECK(std > 0, "log_normal_ needs std > 0; it is ", std, ".");
  return drawInto("log_normal_", out, [=](Engine& engine) {
    return std::lognormal_distribution(mean, std)(engine);
  });
}

// [common.math.distributions.geometric] Inversion in floating point gives results of any size, where `<random>` stops at its largest integer.
Draw geometric(const at::Tensor& out, double p) {
  TORCH_CHECK(0 < p && p < 1, "geometric_ needs 0 < p < 1; it is ", p, ".");
  return drawInto("geometric_", out, [p](Engine& engine) {
    const double u = std::uniform_real_distribution(0., 1.)(engine);
    return std::max(1., std::ceil(std::log1p(-u) / std::log1p(-p)));
  });
}

// [common.math.distributions.each] Every element may have parameters of its own, in tensors on the device.
namespace {

/// Calls `sample(engine, a, b)` for each pair of elements, after broadcasting.
template <class Sample>
Draw drawEach(const char* name, const at::Tensor& out, const at::Tensor& a,
              const at::Tensor& b, Sample sample) {
  checkFloating(name, a);
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), name,
              " needs parameters of one type; they are ", a.scalar_type(),
              " and ", b.scalar_type(), ".");
  const auto kernel = [sample](const RandomNumbers& numbers, at::Tensor out,
                               const at::Tensor& a, const at::Tensor& b) {
    const at::Tensor first = a.expand(out.sizes()).contiguous();
    const at::Tensor second = b.expand(out.sizes()).contiguous();
    AT_DISPATCH_V2(out.scalar_type(), "random", AT_WRAP([&] {
                     const auto* one = first.const_data_ptr<scalar_t>();
                     const auto* two = second.const_data_ptr<scalar_t>();
                     fillEach<scalar_t>(out, [&](int64_t i) {
                       Engine engine = engineOf(numbers, i);
                       const double drawn =
                           sample(engine, static_cast<double>(one[i]),
                                  static_cast<double>(two[i]));
                       return static_cast<scalar_t>(drawn);
                     });
                   }),
                   AT_EXPAND(AT_FLOATING_TYPES), at::kHalf, at::kBFloat16);
  };
  return drawBy(name, kOffsetsPerElement, kernel, out, a, b);
}

// [common.math.distributions.parameters] Only the kernel sees the values of these parameters, so a wrong one is refused late.
/// Beyond this, doubles begin to skip integers, and the normal distribution is
/// as exact as they are.
constexpr double kLargestCount = 1e15;

double normalApproximation(Engine& engine, double mean, double variance) {
  if (!std::isfinite(mean)) return mean;
  return std::round(
      std::normal_distribution(mean, std::sqrt(variance))(engine));
}

}  // namespace

Draw poisson(const at::Tensor& out, const at::Tensor& rate) {
  return drawEach("poisson", out, rate, rate,
                  [](Engine& engine, double rate, double) -> double {
                    TORCH_CHECK(rate >= 0, "poisson needs rates >= 0; one is ",
                                rate, ".");
                    if (rate == 0) return 0;
                    if (rate > kLargestCount)
                      return normalApproximation(engine, rate, rate);
                    return std::poisson_distribution<int64_t>(rate)(engine);
                  });
}

Draw binomial(const at::Tensor& out, const at::Tensor& count,
              const at::Tensor& probability) {
  return drawEach(
      "binomial", out, count, probability,
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

// [common.math.distributions.gamma] Results stay above zero, because callers take their logarithm.
Draw standardGamma(const at::Tensor& out, const at::Tensor& alpha) {
  checkFloating("_standard_gamma", out);
  return drawEach(
      "_standard_gamma", out, alpha, alpha,
      [least = smallestPositive(out)](Engine& engine, double alpha, double) {
        // As on the CPU, zero and NaN give the smallest number that has a
        // logarithm.
        if (!(alpha > 0)) return least;
        return std::max(std::gamma_distribution(alpha)(engine), least);
      });
}

// [-]
}  // namespace openreg::math
