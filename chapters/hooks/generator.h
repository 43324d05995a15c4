// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "torch_openreg/chapters/device/runtime.h"

#include <ATen/core/Generator.h>
#include <c10/core/Stream.h>
#include <c10/util/FunctionRef.h>

#include <memory>
#include <mutex>
#include <optional>

namespace openreg {

// [hooks.generator.counter] A random number is a function of a seed and an offset, so kernels share no state.
/// Where a kernel's random numbers begin. Number i of a kernel depends on
/// `seed`, `offset` and i alone, so kernels need no state and no order. One
/// offset provides 128 random bits for every i. So a kernel reserves as many
/// offsets as one element needs, whatever the number of elements.
struct RandomState {
  uint64_t seed;    ///< names a sequence
  uint64_t offset;  ///< where in the sequence, from 0
};

// [hooks.generator.range] What a launch carries may be numbers, or the place where its kernel finds them.
/// Where the numbers of a launch begin: at `state`, if `base` is null.
/// Otherwise `base` is in device memory, the kernel reads it when it runs, and
/// adds the offset of `state` to the one that it finds there.
struct RandomRange {
  RandomState state;                  ///< captured by value
  uint64_t number = 0;                ///< names the base; 0 is none
  const RandomState* base = nullptr;  ///< device address
};

// [hooks.generator.sequence] A seed and an offset are all that there is to a sequence.
/// A change of where a generator stands.
using RandomMove = c10::function_ref<void(RandomRange&)>;

/// A seed, and the first offset that is still unused. Thread-safe.
class Counter {
 public:
  /// Reads and changes in one step; returns what was there before.
  RandomState move(RandomMove move);
  /// Reserves `count` offsets; no other caller gets them.
  RandomState take(uint64_t count);
  /// What the next `take` would begin with.
  RandomState now();
  /// The sequence goes on from there.
  void set(RandomState state);

 private:
  std::mutex mutex_;
  RandomState state_{c10::default_rng_seed_val, 0};
};

// [hooks.generator] PyTorch's interface for generators, around a counter.
/// A counter-based generator (Philox): two integers, and nothing on the device.
/// In Python its state is a CPU byte tensor of 16 elements, seed then offset.
/// On a stream that is captured, a state may be one of 24 elements, an offset
/// after a base, and seeds, states and draws are recorded. Thread-safe.
class Generator final : public c10::GeneratorImpl {
 public:
  /// Generators with one counter draw from one sequence.
  explicit Generator(c10::DeviceIndex index, std::shared_ptr<Counter> counter =
                                                 std::make_shared<Counter>());

  /// Reserves `count` offsets; no other caller gets them.
  RandomRange reserve(uint64_t count);

  void set_current_seed(uint64_t seed) override;
  uint64_t current_seed() const override;
  uint64_t seed() override;
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override;
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

  /// Reserves `increment` numbers of 32 bits for every i; the offset is counted
  /// in them, too. Overrides PyTorch's since 2.14, pytorch/pytorch#191019.
  void philox_state(uint64_t increment, at::Tensor& seed, at::Tensor& offset,
                    at::Tensor& intragraph_offset);

  void graphsafe_set_state(
      const c10::intrusive_ptr<c10::GeneratorImpl>& other) override;
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override;

  // [hooks.generator.private] On a stream that is captured, each of these functions is recorded.
 private:
  Generator* clone_impl() const override;
  std::shared_ptr<Counter> counter() const;
  /// Where the generator was; `move` may change it.
  RandomRange move(RandomMove move) const;
  RandomRange now() const;
  /// Outside of captures, the state that `at` stands for.
  RandomRange placed(const RandomRange& at) const;
  std::optional<c10::Stream> capturedStream() const;

  mutable std::mutex counter_mutex_;
  std::shared_ptr<Counter> counter_;
};

// [hooks.generator.captured] A launch that is recorded runs later, and perhaps often; each run needs numbers of its own.
/// How generators are used on streams that are captured.
struct CapturedRandom {
  /// Where `counter` stood in the capture of `stream`, before this `move`.
  RandomRange (*move)(const std::shared_ptr<Counter>& counter,
                      const c10::Stream& stream, RandomMove move);
  /// Where the latest run stood at `range`, which has a number.
  RandomState (*latest)(const RandomRange& range);
};
/// Sets the functions, which outlive all captures. Until then, and after null,
/// a generator refuses with a sentence.
void setCapturedRandom(const CapturedRandom* functions);

// [hooks.generator.of-device] Each device has a generator.
/// The generator that a device uses when none is given. Does not start the
/// device.
const at::Generator& defaultGenerator(c10::DeviceIndex index);

// [-]
}  // namespace openreg
