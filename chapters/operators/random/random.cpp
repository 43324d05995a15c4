// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/operators/random/random.h"

#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/view_as_real.h>
#include <torch/library.h>

#include <cmath>
#include <numbers>

namespace openreg {
// [operators.random.reserve] Offsets are reserved on the host, in program order.
RandomRange reserve(const at::Tensor& self,
                    const std::optional<at::Generator>& generator,
                    uint64_t count) {
  const at::Generator& chosen = generator && generator->defined()
                                    ? *generator
                                    : defaultGenerator(self.device().index());
  TORCH_CHECK(chosen.device() == self.device(), "The generator is of ",
              chosen.device(), ", the tensor is on ", self.device(),
              "; they must be on one device.");
  at::assert_no_internal_overlap(self);
  return static_cast<Generator*>(chosen.unsafeGetGeneratorImpl())
      ->reserve(count);
}

// [operators.random.types] The host refuses dtypes for which a sampler has no formula.
void checkFloating(const char* name, const at::Tensor& self,
                   bool with_complex) {
  const at::ScalarType dtype = self.scalar_type();
  TORCH_CHECK_NOT_IMPLEMENTED(
      (at::isComplexType(dtype) && with_complex) ||
          (at::isFloatingType(dtype) && !at::isFloat8Type(dtype)),
      name, " does not support ", dtype, "; use a floating type.");
}

void checkReal(const char* name, const at::Tensor& self, bool with_bool) {
  const at::ScalarType dtype = self.scalar_type();
  TORCH_CHECK_NOT_IMPLEMENTED(
      (at::isIntegralType(dtype, with_bool) &&
       !at::isBarebonesUnsignedType(dtype)) ||
          (at::isFloatingType(dtype) && !at::isFloat8Type(dtype)),
      name, " does not support ", dtype,
      "; use a floating type, or one of whole numbers.");
}

// [operators.random.limits] The range of each dtype, in types of the host.
namespace {

struct Limits {
  double lowest, highest;
  /// One more than the largest n for which the dtype holds every integer to n.
  int64_t end = std::numeric_limits<int64_t>::max();
};

Limits limitsOf(at::ScalarType dtype) {
  Limits limits;
  AT_DISPATCH_V2(
      c10::toRealValueType(dtype), "random", AT_WRAP([&] {
        using Type = std::numeric_limits<scalar_t>;
        limits.lowest = static_cast<double>(Type::lowest());
        limits.highest = static_cast<double>(Type::max());
        if constexpr (Type::digits < 63) {
          limits.end = (int64_t{1} << Type::digits) + !Type::is_integer;
        }
      }),
      AT_EXPAND(AT_ALL_TYPES), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES),
      at::kHalf, at::kBFloat16, at::kBool);
  return limits;
}

}  // namespace

// [operators.random.range] A bound that the dtype cannot hold would become another number, or infinity.
void checkRange(const char* name, const at::Tensor& self, double from,
                double to) {
  const Limits limits = limitsOf(self.scalar_type());
  TORCH_CHECK(limits.lowest <= from && to <= limits.highest, name,
              " cannot draw from ", from, " to ", to, "; ", self.scalar_type(),
              " holds only ", limits.lowest, " to ", limits.highest,
              "; use a wider type.");
}

void checkHolds(const char* name, const at::Tensor& self, int64_t n) {
  const int64_t end = limitsOf(self.scalar_type()).end;
  TORCH_CHECK(n <= end, name, " was to make ", n,
              " different whole numbers, but ", self.scalar_type(),
              " has only ", end, "; use a wider type.");
}

namespace {

// [operators.random.uniform] Uniform numbers in the half-open interval from `from` to `to`.
at::Tensor& uniform(at::Tensor& self, double from, double to,
                    std::optional<at::Generator> generator) {
  TORCH_CHECK(from <= to, "uniform_ needs from <= to; from is ", from,
              ", to is ", to, ".");
  checkFloating("uniform_", self, /*with_complex=*/true);
  checkRange("uniform_", self, from, to);
  TORCH_CHECK(std::isfinite(to - from),
              "uniform_ needs a finite to - from; from is ", from, ", to is ",
              to, ".");
  launchKernel(
      "uniform_",
      [from, to, range = reserve(self, generator)](at::Tensor self) {
        const RandomState state = onDevice(range);
        at::Tensor reals = self.is_complex() ? at::view_as_real(self) : self;
        AT_DISPATCH_FLOATING_TYPES_AND2(
            at::kHalf, at::kBFloat16, reals.scalar_type(), "uniform_", [&] {
              sampleInto<scalar_t>(reals, state, [&](uint64_t bits) {
                const auto value = static_cast<scalar_t>(
                    from + (to - from) * unitInterval<scalar_t>(bits));
                // Rounding may give the bound itself, which is excluded.
                return value == static_cast<scalar_t>(to)
                           ? static_cast<scalar_t>(from)
                           : value;
              });
            });
      },
      self);
  return self;
}

// [operators.random.normal] The Box-Muller transform makes one normal number of two uniform ones.
template <class T>
double standardNormal(RandomState state, int64_t i) {
  // A double needs more than the 64 bits that serve two floats.
  constexpr bool wide = std::is_same_v<T, double>;
  using Uniform = std::conditional_t<wide, double, float>;
  const uint64_t bits = randomBits(state, i);
  const uint64_t more = wide ? moreRandomBits(state, i) : bits << 32;
  const double radius =
      std::sqrt(-2 * std::log1p(-unitInterval<Uniform>(bits)));
  return radius * std::cos(2 * std::numbers::pi * unitInterval<Uniform>(more));
}

// [operators.random.normal-kernel] A complex number has two normal parts, and its variance is shared between them.
at::Tensor& normal(at::Tensor& self, double mean, double std,
                   std::optional<at::Generator> generator) {
  checkFloating("normal_", self, /*with_complex=*/true);
  TORCH_CHECK(std >= 0, "normal_ needs std >= 0; it is ", std, ".");
  launchKernel(
      "normal_",
      [mean, std, range = reserve(self, generator)](at::Tensor self) {
        const RandomState state = onDevice(range);
        at::Tensor reals = self.is_complex() ? at::view_as_real(self) : self;
        const double scale =
            self.is_complex() ? std / std::numbers::sqrt2 : std;
        AT_DISPATCH_FLOATING_TYPES_AND2(
            at::kHalf, at::kBFloat16, reals.scalar_type(), "normal_", [&] {
              fillEach<scalar_t>(reals, [&](int64_t i) {
                return static_cast<scalar_t>(
                    mean + scale * standardNormal<scalar_t>(state, i));
              });
            });
      },
      self);
  return self;
}

// [operators.random.integers] Integers in the half-open interval from `from` to `to`.
at::Tensor& randomFromTo(at::Tensor& self, int64_t from,
                         std::optional<int64_t> to,
                         std::optional<at::Generator> generator) {
  if (!at::isBarebonesUnsignedType(self.scalar_type()))
    checkReal("random_", self, /*with_bool=*/true);
  const int64_t end = to.value_or(limitsOf(self.scalar_type()).end);
  TORCH_CHECK(from < end, "random_ needs from < to; from is ", from, ", to is ",
              end, ".");
  checkRange("random_", self, static_cast<double>(from),
             static_cast<double>(end - 1));
  const uint64_t first = from, width = static_cast<uint64_t>(end) - first;
  launchKernel(
      "random_",
      [first, width, range = reserve(self, generator)](at::Tensor self) {
        const RandomState state = onDevice(range);
        AT_DISPATCH_V2(self.scalar_type(), "random_", AT_WRAP([&] {
                         sampleInto<scalar_t>(self, state, [&](uint64_t bits) {
                           return static_cast<scalar_t>(
                               static_cast<int64_t>(first + bits % width));
                         });
                       }),
                       AT_EXPAND(AT_ALL_TYPES),
                       AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES), at::kHalf,
                       at::kBFloat16, at::kBool);
      },
      self);
  return self;
}

// [operators.random.any] Without bounds, the dtype determines the range.
at::Tensor& randomTo(at::Tensor& self, int64_t to,
                     std::optional<at::Generator> generator) {
  return randomFromTo(self, 0, to, generator);
}

at::Tensor& random(at::Tensor& self, std::optional<at::Generator> generator) {
  checkReal("random_", self, /*with_bool=*/true);
  return randomFromTo(self, 0, std::nullopt, generator);
}

// [operators.random.bernoulli] One with probability `p`, otherwise zero.
at::Tensor& bernoulli(at::Tensor& self, double p,
                      std::optional<at::Generator> generator) {
  TORCH_CHECK(0 <= p && p <= 1, "bernoulli_ needs 0 <= p <= 1; it is ", p, ".");
  checkReal("bernoulli_", self, /*with_bool=*/true);
  launchKernel(
      "bernoulli_",
      [p, range = reserve(self, generator)](at::Tensor self) {
        const RandomState state = onDevice(range);
        AT_DISPATCH_V2(
            self.scalar_type(), "bernoulli_", AT_WRAP([&] {
              sampleInto<scalar_t>(self, state, [&](uint64_t bits) {
                return static_cast<scalar_t>(unitInterval<double>(bits) < p);
              });
            }),
            AT_EXPAND(AT_ALL_TYPES), at::kHalf, at::kBFloat16, at::kBool);
      },
      self);
  return self;
}

// [operators.random.dropout] The mask comes from the device's generator, not from the CPU's.
std::tuple<at::Tensor, at::Tensor> nativeDropout(const at::Tensor& input,
                                                 double p,
                                                 std::optional<bool> train) {
  at::Tensor mask = at::empty_like(input, input.options().dtype(at::kBool));
  if (!train.value_or(true) || p == 0) return {input.clone(), mask.fill_(true)};
  bernoulli(mask, 1 - p, std::nullopt);
  if (p == 1) return {at::empty_like(input).zero_(), mask};
  return {input.mul(mask).mul_(1 / (1 - p)), mask};
}

// [operators.random.register] The fallback would draw from the CPU's generator; these kernels draw from ours.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("uniform_", &uniform);
  m.impl("normal_", &normal);
  m.impl("random_", &random);
  m.impl("random_.to", &randomTo);
  m.impl("random_.from", &randomFromTo);
  m.impl("bernoulli_.float", &bernoulli);
  m.impl("native_dropout", &nativeDropout);
}

// [-]
}  // namespace
}  // namespace openreg
