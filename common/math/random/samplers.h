// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/common/math/interface/openreg_random.h"
#include "torch_openreg/common/math/launch/device_code.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace openreg::math {

// [common.math.random.bits] Numbers 2k and 2k + 1 are a function of seed, offset and k, so any thread may compute them.
/// The bits of two neighbors.
struct Pair {
  uint64_t even;  ///< of number 2k
  uint64_t odd;   ///< of number 2k + 1
};

/// How many pairs are computed together.
constexpr int kBlock = 32;

/// Those of `kBlock` pairs from pair `first` on. Pair k has the 128 bits that
/// `at::Philox4_32(seed, k, offset)` draws first.
std::array<Pair, kBlock> randomPairs(const RandomNumbers& from, uint64_t first);

/// Calls `visit(k, pair k)` for each k from `begin` to `end` - 1.
template <class Visit>
void forEachPair(const RandomNumbers& from, int64_t begin, int64_t end,
                 const Visit& visit) {
  for (int64_t first = begin; first < end; first += kBlock) {
    const auto pairs = randomPairs(from, first);
    const int64_t last = std::min(first + kBlock, end);
    for (int64_t k = first; k < last; ++k) visit(k, pairs[k - first]);
  }
}

/// A number in [0, 1) with as many binary digits as T has.
template <class T>
double unitInterval(uint64_t bits) {
  constexpr int digits = std::numeric_limits<T>::digits;
  constexpr double unit = 1. / (uint64_t{1} << digits);
  return static_cast<double>(bits >> (64 - digits)) * unit;
}

// [common.math.random.fill] A kernel that draws is a function from a position to an element.
/// Calls `fill(data, begin, end)` for ranges of the elements in logical order;
/// all but the last end are even. Must run on the device.
template <class Element, class Fill>
void fillRanges(at::Tensor& self, Fill fill) {
  at::Tensor packed = self.contiguous();
  auto* data = packed.data_ptr<Element>();
  const int64_t count = packed.numel();
  at::parallel_for(0, (count + 1) / 2, 1 << 11,
                   [&](int64_t begin, int64_t end) {
                     fill(data, 2 * begin, std::min(2 * end, count));
                   });
  if (!packed.is_same(self)) self.copy_(packed);
}

// [common.math.random.on-device] A launch that is replayed begins elsewhere each time, so the kernel itself looks where.
/// Where the numbers of a launch begin. Only for code that runs on the device.
inline RandomNumbers resolved(const RandomNumbers& numbers) {
  if (!numbers.base) return numbers;
  const uint64_t* base = onDevice(numbers.base);
  return {base[0], base[1] + numbers.offset};
}

/// `kernel` without its first argument. The others keep their types, which say
/// which tensors it writes.
template <class Kernel, class... Views>
auto withNumbers(const Kernel& kernel, const RandomNumbers& numbers,
                 void (Kernel::*)(const RandomNumbers&, Views...) const) {
  return [=](Views... views) { kernel(resolved(numbers), views...); };
}

/// Launches `kernel(numbers, tensors...)`, with numbers of so many offsets.
template <class Kernel, class... Tensors>
void drawBy(const char* name, const Source& source, uint64_t offsets,
            const Kernel& kernel, const Tensors&... tensors) {
  const RandomNumbers numbers = source.reserve(offsets);
  launchViews(name, source.stream,
              withNumbers(kernel, numbers, &Kernel::operator()), tensors...);
}

// [common.math.random.sample] A sampler is a function from 64 random bits to an element, or from a pair of them to two.
/// Sets elements 2k and 2k + 1 of `out` to `sample(pair k)`, for every k.
template <class Element, class Sample>
void drawPairs(const char* name, const Source& source, const at::Tensor& out,
               Sample sample) {
  const auto kernel = [sample](const RandomNumbers& numbers, at::Tensor out) {
    fillRanges<Element>(out, [&](Element* data, int64_t begin, int64_t end) {
      forEachPair(numbers, begin / 2, (end + 1) / 2, [&](int64_t k, Pair bits) {
        const auto [even, odd] = sample(bits);
        data[2 * k] = static_cast<Element>(even);
        if (2 * k + 1 < end) data[2 * k + 1] = static_cast<Element>(odd);
      });
    });
  };
  drawBy(name, source, 1, kernel, out);
}

/// Sets each element of `out` to `sample(bits)`, with bits of its own.
template <class Element, class Sample>
void drawEach(const char* name, const Source& source, const at::Tensor& out,
              Sample sample) {
  drawPairs<Element>(name, source, out, [sample](Pair bits) {
    return std::pair(sample(bits.even), sample(bits.odd));
  });
}

// [-]
}  // namespace openreg::math
