// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace openreg::orccl {

// [common.orccl.half] Numbers of 16 bits are only stored; arithmetic converts them to 32 bits and rounds the result to even.
/// The upper half of a float.
struct Bfloat16 {
  Bfloat16() = default;
  explicit Bfloat16(float value) {
    const auto word = std::bit_cast<uint32_t>(value);
    bits =
        std::isnan(value) ? 0x7fc0 : (word + 0x7fff + (word >> 16 & 1)) >> 16;
  }
  explicit operator float() const {
    return std::bit_cast<float>(uint32_t{bits} << 16);
  }
  uint16_t bits;
};

// [common.orccl.half.float16] Multiplying by a power of two moves the exponent, and the hardware's addition does the rounding.
/// The format of IEEE 754 with 5 bits of exponent and 10 of fraction.
struct Half {
  Half() = default;
  explicit Half(float value) {
    const auto word = std::bit_cast<uint32_t>(value);
    const uint32_t sign = word >> 16 & 0x8000;
    // Too large values become infinite first; small ones stay exact.
    const float scaled = std::fabs(value) * 0x1p+112f * 0x1p-110f;
    // The sum with this has only the bits that a half has room for.
    const uint32_t exponent = std::max(word & 0x7f800000, 0x38800000u);
    const float base =
        std::bit_cast<float>((exponent + 0x07800000) & 0x7f800000) + scaled;
    const auto rounded = std::bit_cast<uint32_t>(base);
    const uint32_t magnitude = (rounded >> 13 & 0x7c00) + (rounded & 0x0fff);
    bits = sign | (std::isnan(value) ? 0x7e00 : magnitude);
  }
  explicit operator float() const {
    const uint32_t magnitude = bits & 0x7fff;
    // Infinite and not a number have the largest exponent in both formats.
    const float number =
        magnitude < 0x7c00 ? std::bit_cast<float>(magnitude << 13) * 0x1p+112f
                           : std::bit_cast<float>(magnitude << 13 | 0x7f800000);
    return bits & 0x8000 ? -number : number;
  }
  uint16_t bits;
};

// [-]
}  // namespace openreg::orccl
