// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "chapters/hooks/generator.h"
#include "chapters/operators/launch/launcher.h"

#include <ATen/Parallel.h>
#include <ATen/core/PhiloxRNGEngine.h>

#include <cmath>
#include <limits>

namespace openreg {

// [operators.random.bits] Number i is a function of seed, offset and i, whichever thread computes it.
inline uint64_t bitsOf(RandomState state, int64_t i) {
  at::Philox4_32 engine(state.seed, static_cast<uint64_t>(i), state.offset);
  const uint64_t high = engine();
  return high << 32 | engine();
}

/// A number from [0, 1) with as many digits as T has.
template <class T>
double unit(uint64_t bits) {
  constexpr int digits = std::numeric_limits<T>::digits;
  return std::ldexp(static_cast<double>(bits >> (64 - digits)), -digits);
}

// [operators.random.launch] A sampler turns 64 bits into an element.
/// `self[i] = sample(i)` for every element, in the order of its sizes. Only for
/// code that runs on the device.
template <class Element, class Sample>
void fillEach(at::Tensor& self, Sample sample) {
  at::Tensor packed = self.contiguous();
  auto* data = packed.data_ptr<Element>();
  at::parallel_for(0, packed.numel(), 1 << 12, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) data[i] = sample(i);
  });
  if (!packed.is_same(self)) self.copy_(packed);
}

/// `self[i] = sample(bits)`, with bits of its own for every element.
template <class Element, class Sample>
void sampleInto(at::Tensor& self, RandomState state, Sample sample) {
  fillEach<Element>(self, [&](int64_t i) { return sample(bitsOf(state, i)); });
}

// [operators.random.state] Whose numbers, and which of them.
/// Takes `count` offsets of the generator, or of the device's own if there is
/// none.
/// @throws c10::ValueError if the generator is of another device.
RandomState reserve(const at::Tensor& self,
                    const std::optional<at::Generator>& generator,
                    uint64_t count = 1);

// [operators.random.check] What the host can see, the host refuses.
/// @throws c10::NotImplementedError for a type that is not floating, or has
/// eight bits; and for a complex one, unless `with_complex`.
void checkFloating(const char* name, const at::Tensor& self,
                   bool with_complex = false);

/// @throws c10::NotImplementedError for a type that is neither floating nor of
/// whole numbers.
void checkReal(const char* name, const at::Tensor& self, bool with_bool);

/// @throws c10::ValueError if the type of `self` does not hold `from` and `to`.
void checkRange(const char* name, const at::Tensor& self, double from,
                double to);

/// @throws c10::ValueError if `n` different whole numbers are too many for it.
void checkHolds(const char* name, const at::Tensor& self, int64_t n);

// [-]
}  // namespace openreg
