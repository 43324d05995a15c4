// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/random/samplers.h"

#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/OpMathType.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/view_as_real.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace openreg::math {

// [common.math.random.uniform] Uniform numbers in the half-open interval from `from` to `to`.
Draw uniform(const at::Tensor& out, double from, double to) {
  TORCH_CHECK(from <= to, "uniform_ needs from <= to; from is ", from,
              ", to is ", to, ".");
  checkFloating("uniform_", out, /*with_complex=*/true);
  checkRange("uniform_", out, from, to);
  TORCH_CHECK(std::isfinite(to - from),
              "uniform_ needs a finite to - from; from is ", from, ", to is ",
              to, ".");
  const auto kernel = [from, to](const RandomNumbers& numbers, at::Tensor out) {
    at::Tensor reals = out.is_complex() ? at::view_as_real(out) : out;
    AT_DISPATCH_FLOATING_TYPES_AND2(
        at::kHalf, at::kBFloat16, reals.scalar_type(), "uniform_", [&] {
          sampleInto<scalar_t>(reals, numbers, [&](uint64_t bits) {
            const auto value = static_cast<scalar_t>(
                from + (to - from) * unitInterval<scalar_t>(bits));
            // Rounding may give the bound itself, which is excluded.
            return value == static_cast<scalar_t>(to)
                       ? static_cast<scalar_t>(from)
                       : value;
          });
        });
  };
  return drawBy("uniform_", 1, kernel, out);
}

namespace {

// [common.math.random.normal] The Box-Muller transform makes two normal numbers of two uniform ones.
template <class Real>
std::pair<Real, Real> standardNormals(Pair bits) {
  const Real one = unitInterval<Real>(bits.even);
  const Real other = unitInterval<Real>(bits.odd);
  const Real radius = std::sqrt(-2 * std::log(1 - one));
  const Real angle = 2 * std::numbers::pi_v<Real> * other;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace

// [common.math.random.normal-kernel] A complex number has two normal parts, and its variance is shared between them.
Draw normal(const at::Tensor& out, double mean, double std) {
  TORCH_CHECK(std >= 0, "normal_ needs std >= 0; it is ", std, ".");
  // Without elements it may have any dtype: the CPU takes `randn(0)` of int64.
  if (out.numel() == 0) return {0, [](const RandomNumbers&, orStream_t) {}};
  checkFloating("normal_", out, /*with_complex=*/true);
  const auto kernel = [mean, std](const RandomNumbers& numbers,
                                  at::Tensor out) {
    at::Tensor reals = out.is_complex() ? at::view_as_real(out) : out;
    const double scale = out.is_complex() ? std / std::numbers::sqrt2 : std;
    AT_DISPATCH_FLOATING_TYPES_AND2(
        at::kHalf, at::kBFloat16, reals.scalar_type(), "normal_", [&] {
          using Real = at::opmath_type<scalar_t>;
          fillPairs<scalar_t>(reals, numbers, [&](Pair bits) {
            const auto [one, other] = standardNormals<Real>(bits);
            return std::pair(mean + scale * one, mean + scale * other);
          });
        });
  };
  return drawBy("normal_", 1, kernel, out);
}

// [common.math.random.integers] Integers in the half-open interval from `from` to `to`.
Draw integers(const at::Tensor& out, int64_t from, std::optional<int64_t> to) {
  if (!at::isBarebonesUnsignedType(out.scalar_type()))
    checkReal("random_", out, /*with_bool=*/true);
  const int64_t end = to.value_or(endOfIntegers(out.scalar_type()));
  TORCH_CHECK(from < end, "random_ needs from < to; from is ", from, ", to is ",
              end, ".");
  checkRange("random_", out, static_cast<double>(from),
             static_cast<double>(end - 1));
  // Rounding to the dtype must not leave the bounds.
  const auto [least, greatest] = heldBetween(out.scalar_type(), from, end - 1);
  TORCH_CHECK(from <= least && least <= greatest, "random_ was to draw from ",
              from, " up to, and without, ", end, ", but ", out.scalar_type(),
              " has no number there; use a wider type.");
  const uint64_t first = least, width = greatest - first + 1;
  const auto kernel = [first, width](const RandomNumbers& numbers,
                                     at::Tensor out) {
    AT_DISPATCH_V2(out.scalar_type(), "random_", AT_WRAP([&] {
                     sampleInto<scalar_t>(out, numbers, [&](uint64_t bits) {
                       return static_cast<scalar_t>(
                           static_cast<int64_t>(first + bits % width));
                     });
                   }),
                   AT_EXPAND(AT_ALL_TYPES),
                   AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES), at::kHalf,
                   at::kBFloat16, at::kBool);
  };
  return drawBy("random_", 1, kernel, out);
}

Draw anyIntegers(const at::Tensor& out) {
  checkReal("random_", out, /*with_bool=*/true);
  return integers(out, 0, std::nullopt);
}

// [common.math.random.bernoulli] One with probability `p`, otherwise zero.
Draw bernoulli(const at::Tensor& out, double p) {
  TORCH_CHECK(0 <= p && p <= 1, "bernoulli_ needs 0 <= p <= 1; it is ", p, ".");
  checkReal("bernoulli_", out, /*with_bool=*/true);
  const auto kernel = [p](const RandomNumbers& numbers, at::Tensor out) {
    AT_DISPATCH_V2(
        out.scalar_type(), "bernoulli_", AT_WRAP([&] {
          sampleInto<scalar_t>(out, numbers, [&](uint64_t bits) {
            return static_cast<scalar_t>(unitInterval<double>(bits) < p);
          });
        }),
        AT_EXPAND(AT_ALL_TYPES), at::kHalf, at::kBFloat16, at::kBool);
  };
  return drawBy("bernoulli_", 1, kernel, out);
}

// [common.math.random.permutation] Indices sorted by a random key; equal keys keep the order of the indices.
Draw permutation(const at::Tensor& out, int64_t n) {
  TORCH_CHECK(n >= 0, "randperm needs n >= 0; it is ", n, ".");
  checkReal("randperm", out, /*with_bool=*/false);
  checkHolds("randperm", out, n);
  at::native::resize_output(out, {n});
  const auto kernel = [n](const RandomNumbers& numbers, at::Tensor out) {
    std::vector<std::pair<uint64_t, int64_t>> keys(n);
    for (int64_t i = 0; i < n; ++i) keys[i] = {randomBits(numbers, i), i};
    std::sort(keys.begin(), keys.end());
    at::Tensor order = at::empty({n}, at::TensorOptions(at::kLong));
    auto* data = order.mutable_data_ptr<int64_t>();
    for (int64_t i = 0; i < n; ++i) data[i] = keys[i].second;
    out.copy_(order);
  };
  return drawBy("randperm", 1, kernel, out);
}

// [-]
}  // namespace openreg::math
