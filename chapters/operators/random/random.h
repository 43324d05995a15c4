// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/hooks/generator.h"
#include "torch_openreg/chapters/operators/launch/launcher.h"

#include <ATen/Parallel.h>
#include <ATen/core/PhiloxRNGEngine.h>

#include <cmath>
#include <limits>

namespace openreg {

// [operators.random.bits] Number i is a function of seed, offset and i, so any thread may compute it.
inline uint64_t randomBits(RandomState state, int64_t i) {
  at::Philox4_32 engine(state.seed, static_cast<uint64_t>(i), state.offset);
  const uint64_t high = engine();
  return high << 32 | engine();
}

/// Number i of a second sequence, independent of `randomBits`.
inline uint64_t moreRandomBits(RandomState state, int64_t i) {
  at::Philox4_32 engine(state.seed, static_cast<uint64_t>(i), state.offset);
  engine(), engine();
  const uint64_t high = engine();
  return high << 32 | engine();
}

/// A number in [0, 1) with as many binary digits as T has.
template <class T>
double unitInterval(uint64_t bits) {
  constexpr int digits = std::numeric_limits<T>::digits;
  return std::ldexp(static_cast<double>(bits >> (64 - digits)), -digits);
}

// [operators.random.launch] A sampler is a function from 64 random bits to an element.
/// Sets `self[i] = sample(i)` for every element, in logical order. Must run on
/// the device.
template <class Element, class Sample>
void fillEach(at::Tensor& self, Sample sample) {
  at::Tensor packed = self.contiguous();
  auto* data = packed.data_ptr<Element>();
  at::parallel_for(0, packed.numel(), 1 << 12, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) data[i] = sample(i);
  });
  if (!packed.is_same(self)) self.copy_(packed);
}

/// Sets `self[i] = sample(bits)`, with different bits for every element.
template <class Element, class Sample>
void sampleInto(at::Tensor& self, RandomState state, Sample sample) {
  fillEach<Element>(self,
                    [&](int64_t i) { return sample(randomBits(state, i)); });
}

// [operators.random.state] Each launch reserves its own range of the generator's offsets.
/// Reserves `count` offsets of `generator`, or of the device's default
/// generator if it is empty.
/// @throws c10::Error if the generator belongs to another device.
RandomRange reserve(const at::Tensor& self,
                    const std::optional<at::Generator>& generator,
                    uint64_t count = 1);

/// Where the numbers of a launch begin. Only for code that runs on the device.
inline RandomState onDevice(const RandomRange& range) {
  if (!range.base) return range.state;
  const RandomState base = *onDevice(range.base);
  return {base.seed, base.offset + range.state.offset};
}

// [operators.random.check] The host refuses what it can see before it enqueues anything.
/// @throws c10::NotImplementedError unless the dtype is floating point of more
/// than eight bits; `with_complex` allows complex dtypes too.
void checkFloating(const char* name, const at::Tensor& self,
                   bool with_complex = false);

/// @throws c10::NotImplementedError unless the dtype is integral, or floating
/// point of more than eight bits; `with_bool` allows Bool too.
void checkReal(const char* name, const at::Tensor& self, bool with_bool);

/// @throws c10::Error if the dtype of `self` cannot hold `from` and `to`.
void checkRange(const char* name, const at::Tensor& self, double from,
                double to);

/// @throws c10::Error if the dtype cannot hold `n` different integers.
void checkHolds(const char* name, const at::Tensor& self, int64_t n);

// [-]
}  // namespace openreg
