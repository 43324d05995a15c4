// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "guard/guard.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Generator.h>

#include <cstring>

namespace tiny {

// [first.hooks.generator] A generator is two numbers: a seed, and how far its sequence is used.
struct Generator final : c10::GeneratorImpl {
  struct State {
    uint64_t seed = c10::default_rng_seed_val, offset = 0;
  } state;

  explicit Generator(c10::DeviceIndex index)
      : GeneratorImpl({kDevice, index}, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}
  static c10::DeviceType device_type() { return kDevice; }

  void set_current_seed(uint64_t seed) override { state = {seed, 0}; }
  uint64_t current_seed() const override { return state.seed; }
  void set_offset(uint64_t offset) override { state.offset = offset; }
  uint64_t get_offset() const override { return state.offset; }
  uint64_t seed() override { return (state = {c10::detail::getNonDeterministicRandom(), 0}).seed; }

  // [first.hooks.generator.state] A checkpoint keeps the two numbers as sixteen bytes on the CPU.
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    auto bytes = at::detail::empty_cpu({sizeof(State)}, at::kByte);
    std::memcpy(bytes.data_ptr(), &state, sizeof(State));
    return bytes.getIntrusivePtr();
  }
  void set_state(const c10::TensorImpl& bytes) override {
    at::detail::check_rng_state(bytes);
    TORCH_CHECK_VALUE(bytes.numel() == sizeof(State), "A tiny generator's state has ",
                      sizeof(State), " bytes; this tensor has ", bytes.numel(), ".");
    std::memcpy(&state, bytes.data(), sizeof(State));
  }
  Generator* clone_impl() const override {
    auto* copy = new Generator(device().index());
    copy->state = state;
    return copy;
  }
};

/// The generator of a device, for those who name none; -1 is the current device.
const at::Generator& defaultGenerator(c10::DeviceIndex index);

// [-]
}  // namespace tiny
