// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/math/random/samplers.h"

#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>

#include <bit>

namespace openreg::math {

// [common.math.random.types] The host refuses dtypes for which a sampler has no formula.
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

// [common.math.random.limits] The range of each dtype, in types of the host.
namespace {

struct Limits {
  double lowest, highest;
  int digits;  ///< binary ones, of a number's significant part
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
        limits.digits = Type::digits;
        if constexpr (Type::digits < 63) {
          limits.end = (int64_t{1} << Type::digits) + !Type::is_integer;
        }
      }),
      AT_EXPAND(AT_ALL_TYPES), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES),
      at::kHalf, at::kBFloat16, at::kBool);
  return limits;
}

}  // namespace

// [common.math.random.range] A bound that the dtype cannot hold would become another number, or infinity.
void checkRange(const char* name, const at::Tensor& self, double from,
                double to) {
  const Limits limits = limitsOf(self.scalar_type());
  TORCH_CHECK(limits.lowest <= from && to <= limits.highest, name,
              " cannot draw from ", from, " to ", to, "; ", self.scalar_type(),
              " holds only ", limits.lowest, " to ", limits.highest,
              "; use a wider type.");
}

// [common.math.random.held] Integers that need more digits than the dtype has are held only if they are multiples of a power of two.
static int64_t roundedDown(int64_t n, int digits) {
  const auto bits = static_cast<uint64_t>(n);
  const int excess = std::bit_width(n < 0 ? -bits : bits) - digits;
  return excess > 0 ? n >> excess << excess : n;
}

std::pair<int64_t, int64_t> heldBetween(at::ScalarType dtype, int64_t first,
                                        int64_t last) {
  const int digits = limitsOf(dtype).digits;
  const auto negative = [](int64_t n) {  // The smallest integer has none.
    return static_cast<int64_t>(-static_cast<uint64_t>(n));
  };
  return {negative(roundedDown(negative(first), digits)),
          roundedDown(last, digits)};
}

int64_t endOfIntegers(at::ScalarType dtype) { return limitsOf(dtype).end; }

void checkHolds(const char* name, const at::Tensor& self, int64_t n) {
  const int64_t end = endOfIntegers(self.scalar_type());
  TORCH_CHECK(n <= end, name, " was to make ", n,
              " different whole numbers, but ", self.scalar_type(),
              " has only ", end, "; use a wider type.");
}

// [-]
}  // namespace openreg::math
