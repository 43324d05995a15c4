// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/random/samplers.h"

#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/core/PhiloxRNGEngine.h>

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

// [common.math.distributions.each] Every element may have parameters of its own, in tensors on the device.
/// Sets each element of `out` to `sample(engine, values...)`, a double, with
/// the values that `parameters` have there after broadcasting.
template <class Element, class Sample, class... Tensors>
void drawSamples(const char* name, const Source& source, const at::Tensor& out,
                 Sample sample, const Tensors&... parameters) {
  const auto kernel = [sample](const RandomNumbers& numbers, at::Tensor out,
                               const Tensors&... parameters) {
    const auto fill = [&](const auto*... values) {
      fillRanges<Element>(out, [&](Element* data, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          Engine engine = engineOf(numbers, i);
          data[i] = static_cast<Element>(
              sample(engine, static_cast<double>(values[i])...));
        }
      });
    };
    fill(parameters.expand(out.sizes())
             .contiguous()
             .template const_data_ptr<Element>()...);
  };
  drawBy(name, source, kOffsetsPerElement, kernel, out, parameters...);
}

}  // namespace

// [common.math.distributions.continuous] One type of the host computes; the dtype rounds.
void exponential(const Source& source, const at::Tensor& out, double lambda) {
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, out.scalar_type(), "exponential_", [&] {
        const auto sample = [lambda](Engine& engine) {
          // Callers divide by it, so only an infinite rate gives 0.
          const double least = std::numeric_limits<scalar_t>::min();
          const double time =
              std::exponential_distribution(1.)(engine) / lambda;
          return std::isinf(lambda) ? 0 : std::max(time, least);
        };
        drawSamples<scalar_t>("exponential_", source, out, sample);
      });
}

void cauchy(const Source& source, const at::Tensor& out, double median,
            double sigma) {
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, out.scalar_type(), "cauchy_", [&] {
        const auto sample = [=](Engine& engine) {
          return std::cauchy_distribution(median, sigma)(engine);
        };
        drawSamples<scalar_t>("cauchy_", source, out, sample);
      });
}

void logNormal(const Source& source, const at::Tensor& out, double mean,
               double std) {
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, out.scalar_type(), "log_normal_", [&] {
        const auto sample = [=](Engine& engine) {
          return std::lognormal_distribution(mean, std)(engine);
        };
        drawSamples<scalar_t>("log_normal_", source, out, sample);
      });
}

// [common.math.distributions.geometric] Inversion in floating point gives results of any size, where `<random>` stops at its largest integer.
void geometric(const Source& source, const at::Tensor& out, double p) {
  const auto sample = [p](Engine& engine) {
    const double u = std::uniform_real_distribution(0., 1.)(engine);
    return std::max(1., std::ceil(std::log1p(-u) / std::log1p(-p)));
  };
  AT_DISPATCH_V2(out.scalar_type(), "geometric_", AT_WRAP([&] {
                   drawSamples<scalar_t>("geometric_", source, out, sample);
                 }),
                 AT_EXPAND(AT_ALL_TYPES), at::kHalf, at::kBFloat16);
}

// [common.math.distributions.parameters] Only the kernel sees the values of these parameters, so a wrong one is refused late.
/// Beyond this, doubles begin to skip integers, and the normal distribution is
/// as exact as they are.
static constexpr double kLargestCount = 1e15;

static double normalApproximation(Engine& engine, double mean,
                                  double variance) {
  if (!std::isfinite(mean)) return mean;
  return std::round(
      std::normal_distribution(mean, std::sqrt(variance))(engine));
}

void poisson(const Source& source, const at::Tensor& out,
             const at::Tensor& rate) {
  const auto sample = [](Engine& engine, double rate) -> double {
    TORCH_CHECK(rate >= 0, "poisson needs rates >= 0; one is ", rate, ".");
    if (rate == 0) return 0;
    if (rate > kLargestCount) return normalApproximation(engine, rate, rate);
    return std::poisson_distribution<int64_t>(rate)(engine);
  };
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, out.scalar_type(), "poisson",
      [&] { drawSamples<scalar_t>("poisson", source, out, sample, rate); });
}

// [common.math.distributions.binomial] A pair of parameters is of one type, and is read as such.
void binomial(const Source& source, const at::Tensor& out,
              const at::Tensor& count, const at::Tensor& probability) {
  TORCH_CHECK(count.scalar_type() == probability.scalar_type(),
              "binomial needs parameters of one type; they are ",
              count.scalar_type(), " and ", probability.scalar_type(), ".");
  const auto sample = [](Engine& engine, double n, double p) -> double {
    TORCH_CHECK(n >= 0 && 0 <= p && p <= 1,
                "binomial needs counts >= 0 and probabilities from 0 to 1; "
                "one pair is ",
                n, " and ", p, ".");
    if (n > kLargestCount)
      return normalApproximation(engine, n * p, n * p * (1 - p));
    return std::binomial_distribution(static_cast<int64_t>(n), p)(engine);
  };
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, out.scalar_type(), "binomial", [&] {
        drawSamples<scalar_t>("binomial", source, out, sample, count,
                              probability);
      });
}

// [common.math.distributions.gamma] Results stay above zero, because callers take their logarithm.
void standardGamma(const Source& source, const at::Tensor& out,
                   const at::Tensor& alpha) {
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, out.scalar_type(), "_standard_gamma", [&] {
        const auto sample = [](Engine& engine, double alpha) {
          // As on the CPU, zero and NaN give the smallest number that has a
          // logarithm.
          const double least = std::numeric_limits<scalar_t>::min();
          if (!(alpha > 0)) return least;
          return std::max(std::gamma_distribution(alpha)(engine), least);
        };
        drawSamples<scalar_t>("_standard_gamma", source, out, sample, alpha);
      });
}

// [-]
}  // namespace openreg::math
