// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/random/samplers.h"

#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

namespace openreg::math {

// [common.math.random.philox] Ten rounds of Philox, each for the whole block, in loops that the compiler vectorizes.
std::array<Pair, kBlock> randomPairs(const RandomNumbers& from,
                                     uint64_t first) {
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  std::array<uint32_t, kBlock> a, b, c, d;
  for (int i = 0; i < kBlock; ++i) {
    a[i] = low(from.offset), b[i] = high(from.offset);
    c[i] = low(first + i), d[i] = high(first + i);
  }
  uint32_t key_a = low(from.seed), key_c = high(from.seed);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kBlock; ++i) {
      const uint64_t x = uint64_t{0xD2511F53} * a[i];
      const uint64_t y = uint64_t{0xCD9E8D57} * c[i];
      a[i] = high(y) ^ b[i] ^ key_a, b[i] = low(y);
      c[i] = high(x) ^ d[i] ^ key_c, d[i] = low(x);
    }
    key_a += 0x9E3779B9, key_c += 0xBB67AE85;
  }
  std::array<Pair, kBlock> pairs;
  for (int i = 0; i < kBlock; ++i)
    pairs[i] = {uint64_t{a[i]} << 32 | b[i], uint64_t{c[i]} << 32 | d[i]};
  return pairs;
}

// [common.math.random.uniform] Uniform numbers in the half-open interval from `from` to `to`.
void uniform(const Source& source, const at::Tensor& out, double from,
             double to) {
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, out.scalar_type(), "uniform_", [&] {
        drawEach<scalar_t>("uniform_", source, out, [from, to](uint64_t bits) {
          const auto value = static_cast<scalar_t>(
              from + (to - from) * unitInterval<scalar_t>(bits));
          // Rounding may give the bound itself, which is excluded.
          return value == static_cast<scalar_t>(to)
                     ? static_cast<scalar_t>(from)
                     : value;
        });
      });
}

// [common.math.random.normal] The Box-Muller transform makes two normal numbers of two uniform ones.
template <class Real>
static std::pair<Real, Real> standardNormals(Pair bits) {
  const Real one = unitInterval<Real>(bits.even);
  const Real other = unitInterval<Real>(bits.odd);
  const Real radius = std::sqrt(-2 * std::log(1 - one));
  const Real angle = 2 * std::numbers::pi_v<Real> * other;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

void normal(const Source& source, const at::Tensor& out, double mean,
            double std) {
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::kHalf, at::kBFloat16, out.scalar_type(), "normal_", [&] {
        drawPairs<scalar_t>("normal_", source, out, [mean, std](Pair bits) {
          using Real = at::opmath_type<scalar_t>;
          const auto [one, other] = standardNormals<Real>(bits);
          return std::pair(mean + std * one, mean + std * other);
        });
      });
}

// [common.math.random.held] Integers that need more digits than the dtype has are held only if they are multiples of a power of two.
static int64_t roundedDown(int64_t n, int digits) {
  const auto bits = static_cast<uint64_t>(n);
  const int excess = std::bit_width(n < 0 ? -bits : bits) - digits;
  return excess > 0 ? n >> excess << excess : n;
}

static int64_t roundedUp(int64_t n, int digits) {
  const auto negative = [](int64_t n) {  // The smallest integer has none.
    return static_cast<int64_t>(-static_cast<uint64_t>(n));
  };
  return negative(roundedDown(negative(n), digits));
}

// [common.math.random.integers] Rounding to the dtype must not leave the bounds, so the bounds are numbers that it holds.
void integers(const Source& source, const at::Tensor& out, uint64_t count,
              int64_t first) {
  const auto last = static_cast<int64_t>(first + (count - 1));
  AT_DISPATCH_V2(
      out.scalar_type(), "random_", AT_WRAP([&] {
        constexpr int digits = std::numeric_limits<scalar_t>::digits;
        const int64_t least = roundedUp(first, digits);
        const int64_t greatest = roundedDown(last, digits);
        TORCH_CHECK(first <= least && least <= greatest,
                    "random_ was to draw from ", first, " to ", last, ", but ",
                    out.scalar_type(),
                    " has no number there; use a wider type.");
        const uint64_t begin = least, width = greatest - begin + 1;
        drawEach<scalar_t>("random_", source, out, [=](uint64_t bits) {
          const uint64_t number = begin + (width == 0 ? bits : bits % width);
          return static_cast<scalar_t>(static_cast<int64_t>(number));
        });
      }),
      AT_EXPAND(AT_ALL_TYPES), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES),
      at::kHalf, at::kBFloat16, at::kBool);
}

// [common.math.random.all] Of some dtypes, all integers of 64 bits are numbers.
void allIntegers(const Source& source, const at::Tensor& out) {
  constexpr int64_t first = std::numeric_limits<int64_t>::lowest();
  AT_DISPATCH_V2(out.scalar_type(), "random_",
                 AT_WRAP([&] { integers(source, out, 0, first); }), at::kLong,
                 at::kDouble, at::kFloat, at::kBFloat16);
}

// [common.math.random.bernoulli] One with probability `p`, otherwise zero.
void bernoulli(const Source& source, const at::Tensor& out, double p) {
  AT_DISPATCH_V2(
      out.scalar_type(), "bernoulli_", AT_WRAP([&] {
        drawEach<scalar_t>("bernoulli_", source, out, [p](uint64_t bits) {
          return static_cast<scalar_t>(unitInterval<double>(bits) < p);
        });
      }),
      AT_EXPAND(AT_ALL_TYPES), at::kHalf, at::kBFloat16, at::kBool);
}

// [common.math.random.order] Random keys are spread evenly, so their first bits divide them into short parts that are sorted apart.
using Key = std::pair<uint64_t, int64_t>;  // and the index

/// One key for each of `n` indices, in their order; equal keys keep the order
/// of the indices.
static std::vector<Key> sortedKeys(const RandomNumbers& numbers, int64_t n) {
  const int digits = std::clamp<int>(std::bit_width<uint64_t>(n) - 5, 1, 14);
  const int64_t parts = int64_t{1} << digits;
  std::vector<Key> drawn(n), keys(n);
  std::vector<int64_t> ends(parts + 1);
  const auto partOf = [&](const Key& key) {
    return key.first >> (64 - digits);
  };
  at::parallel_for(0, (n + 1) / 2, 2048, [&](int64_t begin, int64_t end) {
    forEachPair(numbers, begin, end, [&](int64_t k, Pair bits) {
      drawn[2 * k] = {bits.even, 2 * k};
      if (2 * k + 1 < n) drawn[2 * k + 1] = {bits.odd, 2 * k + 1};
    });
  });
  for (const Key& key : drawn) ++ends[partOf(key) + 1];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  // Each end is where its part begins until the part is filled.
  for (const Key& key : drawn) keys[ends[partOf(key)]++] = key;
  at::parallel_for(0, parts, 16, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part)
      std::sort(keys.begin() + (part ? ends[part - 1] : 0),
                keys.begin() + ends[part]);
  });
  return keys;
}

// [common.math.random.permutation] A permutation is the indices in the order of their keys.
void permutation(const Source& source, const at::Tensor& out, int64_t n) {
  TORCH_CHECK(n >= 0, "randperm needs n >= 0; it is ", n, ".");
  AT_DISPATCH_V2(
      out.scalar_type(), "randperm", AT_WRAP([&] {
        using Type = std::numeric_limits<scalar_t>;
        const double most = std::ldexp(1, Type::digits) + !Type::is_integer;
        TORCH_CHECK(n <= most, "randperm was to make ", n,
                    " different whole numbers, but ", out.scalar_type(),
                    " has only ", most, "; use a wider type.");
      }),
      AT_EXPAND(AT_ALL_TYPES), at::kHalf, at::kBFloat16);
  at::native::resize_output(out, {n});
  const auto kernel = [n](const RandomNumbers& numbers, at::Tensor out) {
    const std::vector<Key> keys = sortedKeys(numbers, n);
    at::Tensor order = at::empty({n}, at::TensorOptions(at::kLong));
    auto* data = order.mutable_data_ptr<int64_t>();
    for (int64_t i = 0; i < n; ++i) data[i] = keys[i].second;
    out.copy_(order);
  };
  drawBy("randperm", source, 1, kernel, out);
}

// [-]
}  // namespace openreg::math
