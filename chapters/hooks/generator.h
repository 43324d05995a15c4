// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "chapters/device/runtime.h"

#include <ATen/core/Generator.h>

namespace openreg {

// [hooks.generator] Random numbers that are a function of two: a seed and an offset.
/// Where a kernel's random numbers begin. Number i of a kernel is a function of
/// `seed`, `offset` and i alone, so kernels need no state and no order.
struct RandomState {
  uint64_t seed;
  uint64_t offset;
};

/// A counter-based generator (Philox): two integers, and nothing on the device.
/// Its state in Python is a CPU byte tensor of 16 elements, seed then offset.
class Generator final : public c10::GeneratorImpl {
 public:
  explicit Generator(c10::DeviceIndex index);

  /// Takes `count` offsets, so that nobody else gets them. Thread-safe.
  RandomState reserve(uint64_t count);

  void set_current_seed(uint64_t seed) override;
  uint64_t current_seed() const override;
  uint64_t seed() override;
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override;
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

 private:
  Generator* clone_impl() const override;

  mutable std::mutex state_mutex_;
  RandomState state_{c10::default_rng_seed_val, 0};
};

/// The generator that a device uses when none is given. Starts nothing.
const at::Generator& defaultGenerator(c10::DeviceIndex index);

// [-]
}  // namespace openreg
