// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "chapters/device/runtime.h"

#include <ATen/core/Generator.h>

#include <memory>
#include <mutex>

namespace openreg {

// [hooks.generator.counter] Random numbers that are a function of two: a seed and an offset.
/// Where a kernel's random numbers begin. Number i of a kernel is a function of
/// `seed`, `offset` and i alone, so kernels need no state and no order. An
/// offset is 128 random bits for each i: a kernel takes as many offsets as one
/// of its elements needs, however many elements there are.
struct RandomState {
  uint64_t seed;
  uint64_t offset;
};

/// A seed, and how far it has come. Thread-safe.
class Counter {
 public:
  RandomState now() const;
  void set(RandomState state);
  void setOffset(uint64_t offset);
  /// Takes `count` offsets, so that nobody else gets them.
  RandomState take(uint64_t count);

 private:
  mutable std::mutex mutex_;
  RandomState state_{c10::default_rng_seed_val, 0};
};

// [hooks.generator] PyTorch's interface around a counter.
/// A counter-based generator (Philox): two integers, and nothing on the device.
/// Its state in Python is a CPU byte tensor of 16 elements, seed then offset.
class Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(c10::DeviceIndex index, std::shared_ptr<Counter> counter =
                                                 std::make_shared<Counter>());

  /// Takes `count` offsets, so that nobody else gets them. Thread-safe.
  RandomState reserve(uint64_t count) { return counter()->take(count); }

  void set_current_seed(uint64_t seed) override;
  uint64_t current_seed() const override;
  uint64_t seed() override;
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override;
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

  void graphsafe_set_state(
      const c10::intrusive_ptr<c10::GeneratorImpl>& other) override;
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override;

 private:
  Generator* clone_impl() const override;
  std::shared_ptr<Counter> counter() const;

  mutable std::mutex counter_mutex_;
  std::shared_ptr<Counter> counter_;
};

/// The generator that a device uses when none is given. Starts nothing.
const at::Generator& defaultGenerator(c10::DeviceIndex index);

// [-]
}  // namespace openreg
