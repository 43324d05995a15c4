// SPDX-License-Identifier: BSD-3-Clause
#include "chapters/hooks/generator.h"

#include <ATen/Utils.h>
#include <ATen/EmptyTensor.h>

#include <array>
#include <cstring>
#include <utility>

namespace openreg {

// [hooks.generator.create] Dispatch keys say on which device its numbers are used.
Generator::Generator(c10::DeviceIndex index)
    : GeneratorImpl({kDeviceType, index},
                    c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

// [hooks.generator.reserve] Whoever needs numbers says how many, and gets them alone.
RandomState Generator::reserve(uint64_t count) {
  std::lock_guard lock(state_mutex_);
  return {state_.seed, std::exchange(state_.offset, state_.offset + count)};
}

// [hooks.generator.seed] A new seed begins anew.
void Generator::set_current_seed(uint64_t seed) {
  std::lock_guard lock(state_mutex_);
  state_ = {seed, 0};
}

uint64_t Generator::current_seed() const {
  std::lock_guard lock(state_mutex_);
  return state_.seed;
}

uint64_t Generator::seed() {
  const uint64_t seed = c10::detail::getNonDeterministicRandom(true);
  set_current_seed(seed);
  return seed;
}

// [hooks.generator.offset] How far it has come.
void Generator::set_offset(uint64_t offset) {
  std::lock_guard lock(state_mutex_);
  state_.offset = offset;
}

uint64_t Generator::get_offset() const {
  std::lock_guard lock(state_mutex_);
  return state_.offset;
}

// [hooks.generator.state] All of it, as sixteen bytes that can be kept and given back.
c10::intrusive_ptr<c10::TensorImpl> Generator::get_state() const {
  auto state = at::detail::empty_cpu({sizeof(RandomState)}, at::kByte);
  std::lock_guard lock(state_mutex_);
  std::memcpy(state.mutable_data_ptr(), &state_, sizeof(RandomState));
  return state.getIntrusivePtr();
}

void Generator::set_state(const c10::TensorImpl& state) {
  at::detail::check_rng_state(state);
  TORCH_CHECK_VALUE(state.numel() == sizeof(RandomState),
                    "An openreg generator's state has ", sizeof(RandomState),
                    " bytes; this tensor has ", state.numel(), ".");
  std::lock_guard lock(state_mutex_);
  std::memcpy(&state_, state.data(), sizeof(RandomState));
}

// [hooks.generator.clone] A copy that goes its own way.
Generator* Generator::clone_impl() const {
  auto* copy = new Generator(device().index());
  std::lock_guard lock(state_mutex_);
  copy->state_ = state_;
  return copy;
}

// [hooks.generator.default] One for each device, made when first asked for.
const at::Generator& defaultGenerator(c10::DeviceIndex index) {
  static const auto& generators =
      *new std::array<at::Generator, kMaxDevices>([] {
        std::array<at::Generator, kMaxDevices> all;
        for (size_t i = 0; i < kMaxDevices; ++i)
          all[i] =
              at::make_generator<Generator>(static_cast<c10::DeviceIndex>(i));
        return all;
      }());
  return generators[resolveDevice(index)];
}

// [-]
}  // namespace openreg
