// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/hooks/generator.h"
#include "torch_openreg/chapters/device/streams/stream.h"

#include <ATen/EmptyTensor.h>

#include <array>
#include <atomic>
#include <cstring>
#include <utility>

namespace openreg {

// [hooks.generator.take] A kernel reserves the offsets that it needs, and no other kernel gets them.
RandomState Counter::take(uint64_t count) {
  std::lock_guard lock(mutex_);
  return {state_.seed, std::exchange(state_.offset, state_.offset + count)};
}

// [hooks.generator.now] Seed and offset are read and changed together.
RandomState Counter::now() const {
  std::lock_guard lock(mutex_);
  return state_;
}

void Counter::set(RandomState state) {
  std::lock_guard lock(mutex_);
  state_ = state;
}

void Counter::setOffset(uint64_t offset) {
  std::lock_guard lock(mutex_);
  state_.offset = offset;
}

// [hooks.generator.create] The dispatch key of a generator tells PyTorch on which device it is used.
Generator::Generator(c10::DeviceIndex index, std::shared_ptr<Counter> counter)
    : GeneratorImpl({kDeviceType, index},
                    c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
      counter_(std::move(counter)) {}

// [hooks.generator.seed] A new seed sets the offset back to zero.
void Generator::set_current_seed(uint64_t seed) { counter()->set({seed, 0}); }

uint64_t Generator::current_seed() const { return counter()->now().seed; }

uint64_t Generator::seed() {
  const uint64_t seed = c10::detail::getNonDeterministicRandom(true);
  set_current_seed(seed);
  return seed;
}

// [hooks.generator.offset] The offset says how much of the sequence has been used.
void Generator::set_offset(uint64_t offset) { counter()->setOffset(offset); }

uint64_t Generator::get_offset() const { return counter()->now().offset; }

// [hooks.generator.state] The whole state is sixteen bytes, which a checkpoint can keep.
c10::intrusive_ptr<c10::TensorImpl> Generator::get_state() const {
  auto bytes = at::detail::empty_cpu({sizeof(RandomState)}, at::kByte);
  const RandomState state = counter()->now();
  std::memcpy(bytes.mutable_data_ptr(), &state, sizeof(state));
  return bytes.getIntrusivePtr();
}

void Generator::set_state(const c10::TensorImpl& bytes) {
  TORCH_CHECK_TYPE(
      bytes.layout() == at::kStrided && bytes.is_cpu() &&
          bytes.dtype() == at::kByte,
      "An openreg generator's state is a strided CPU tensor of Byte; "
      "this one is a ",
      bytes.layout(), " one of ", c10::typeMetaToScalarType(bytes.dtype()),
      " on ", bytes.device(), ".");
  TORCH_CHECK_VALUE(
      bytes.numel() == sizeof(RandomState) && bytes.is_contiguous(),
      "An openreg generator's state has ", sizeof(RandomState),
      " bytes; this tensor has ", bytes.numel(),
      bytes.is_contiguous() ? "." : ", and they are not contiguous.");
  const size_t needed = bytes.storage_offset() + sizeof(RandomState);
  TORCH_CHECK_VALUE(bytes.storage().nbytes() >= needed,
                    "An openreg generator's state has ", sizeof(RandomState),
                    " bytes; this tensor's storage was resized to ",
                    bytes.storage().nbytes(), ", and ", needed, " are needed.");
  RandomState state;
  std::memcpy(&state, bytes.data(), sizeof(state));
  counter()->set(state);
}

// [hooks.generator.philox] Kernels from outside reserve offsets, too; PyTorch counts one for each 32 bits, we for each 128.
void Generator::philox_state(uint64_t increment, at::Tensor& seed,
                             at::Tensor& offset,
                             at::Tensor& intragraph_offset) {
  const auto tensor = [](uint64_t value) {
    at::Tensor element = at::detail::empty_cpu({1}, at::kLong);
    std::memcpy(element.mutable_data_ptr(), &value, sizeof(value));
    return element;
  };
  const RandomRange range = reserve(increment / 4 + (increment % 4 > 0));
  TORCH_CHECK_NOT_IMPLEMENTED(
      !range.base, "philox_state has no numbers for a graph that is captured ",
      "on ", device(), "; its kernels must draw from the generator.");
  seed = tensor(range.state.seed);
  offset = tensor(range.state.offset * 4);
  intragraph_offset = tensor(0);
}

// [hooks.generator.clone] A clone has a counter of its own.
Generator* Generator::clone_impl() const {
  auto* copy = new Generator(device().index());
  copy->counter_->set(counter()->now());
  return copy;
}

// [hooks.generator.share] Generators with a graph-safe state share a counter: an offset that one takes, the other skips.
c10::intrusive_ptr<c10::GeneratorImpl> Generator::graphsafe_get_state() const {
  return c10::make_intrusive<Generator>(device().index(), counter());
}

void Generator::graphsafe_set_state(
    const c10::intrusive_ptr<c10::GeneratorImpl>& other) {
  TORCH_CHECK_VALUE(other->device() == device(), "A generator of ", device(),
                    " cannot share the counter of one of ", other->device(),
                    "; they must be on one device.");
  auto counter = static_cast<const Generator&>(*other).counter();
  std::lock_guard lock(counter_mutex_);
  counter_ = std::move(counter);
}

std::shared_ptr<Counter> Generator::counter() const {
  std::lock_guard lock(counter_mutex_);
  return counter_;
}

// [hooks.generator.reserve] A recorded kernel that kept its offset would draw the same numbers at every run.
static RandomRange refuseCaptured(const std::shared_ptr<Counter>&,
                                  const c10::Stream& stream, uint64_t) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, "Random numbers cannot be drawn on stream ", stream.id(), " of ",
      stream.device(), " while it is captured; every run would draw ",
      "the same ones.");
}

static constinit std::atomic<CapturedReserve> captured_reserve{&refuseCaptured};

void onCapturedReserve(CapturedReserve reserve) {
  captured_reserve = reserve ? reserve : &refuseCaptured;
}

RandomRange Generator::reserve(uint64_t count) {
  const c10::Stream stream = currentStream(device().index());
  if (!isCaptured(stream)) return {counter()->take(count)};
  return captured_reserve.load()(counter(), stream, count);
}

// [hooks.generator.default] Each device has one default generator, created on first use.
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
