// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/hooks/generator.h"
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/check.h"

#include <ATen/core/Tensor.h>
#include <ATen/EmptyTensor.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

namespace openreg {

// [hooks.generator.take] A kernel reserves the offsets that it needs, and no other kernel gets them.
RandomState Counter::move(RandomMove move) {
  std::lock_guard lock(mutex_);
  RandomRange at{state_};
  move(at);
  return std::exchange(state_, at.state);
}

RandomState Counter::take(uint64_t count) {
  return move([&](RandomRange& at) { at.state.offset += count; });
}

RandomState Counter::now() { return take(0); }

void Counter::set(RandomState state) {
  move([&](RandomRange& at) { at.state = state; });
}

// [hooks.generator.create] The dispatch key of a generator tells PyTorch on which device it is used.
Generator::Generator(c10::DeviceIndex index, std::shared_ptr<Counter> counter)
    : GeneratorImpl({kDeviceType, index},
                    c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
      counter_(std::move(counter)) {}

// [hooks.generator.seed] A new seed sets the offset back to zero.
static void checkKnown(const RandomRange& at, const char* asked) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !at.number, "The ", asked, " of a generator is another one at each ",
      "replay, so a capture cannot use it; call manual_seed in the capture ",
      "first, or use get_state and set_state.");
}

void Generator::set_current_seed(uint64_t seed) {
  move([&](RandomRange& at) { at = {{seed, 0}}; });
}

uint64_t Generator::current_seed() const {
  const RandomRange at = now();
  checkKnown(at, "seed");
  return at.state.seed;
}

uint64_t Generator::seed() {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !capturedStream(),
      "An unpredictable seed cannot be captured, because every replay would ",
      "use the same one; call manual_seed, or seed before the replay.");
  const uint64_t seed = c10::detail::getNonDeterministicRandom(true);
  set_current_seed(seed);
  return seed;
}

// [hooks.generator.offset] The offset says how much of the sequence has been used.
void Generator::set_offset(uint64_t offset) {
  move([&](RandomRange& at) {
    checkKnown(at, "seed");
    at.state.offset = offset;
  });
}

uint64_t Generator::get_offset() const {
  const RandomRange at = now();
  checkKnown(at, "offset");
  return at.state.offset;
}

// [hooks.generator.state.check] A tensor that is not a state is refused before anything changes.
static constexpr size_t kStateBytes = sizeof(RandomState);
static constexpr size_t kCapturedBytes = kStateBytes + sizeof(uint64_t);

static size_t checkState(const c10::TensorImpl& bytes) {
  at::detail::check_rng_state(bytes);
  const auto size = static_cast<size_t>(bytes.numel());
  TORCH_CHECK_VALUE(size == kStateBytes || size == kCapturedBytes,
                    "An openreg generator's state has ", kStateBytes,
                    " bytes; this tensor has ", size, ".");
  const size_t needed = bytes.storage_offset() + size;
  TORCH_CHECK_VALUE(bytes.storage().nbytes() >= needed,
                    "An openreg generator's state has ", size,
                    " bytes; this tensor's storage was resized to ",
                    bytes.storage().nbytes(), ", and ", needed, " are needed.");
  return size;
}

// [hooks.generator.state] The whole state is sixteen bytes, which a checkpoint can keep; while a graph is captured, it may be an offset after a base.
c10::intrusive_ptr<c10::TensorImpl> Generator::get_state() const {
  const RandomRange at = now();
  const size_t size = at.number ? kCapturedBytes : kStateBytes;
  auto bytes = at::detail::empty_cpu({static_cast<int64_t>(size)}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), &at, size);
  return bytes.getIntrusivePtr();
}

void Generator::set_state(const c10::TensorImpl& bytes) {
  const size_t size = checkState(bytes);
  RandomRange to;
  std::memcpy(&to, bytes.data(), size);
  to = placed(to);
  move([&](RandomRange& at) { at = to; });
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
  auto copy = std::make_unique<Generator>(device().index());
  copy->counter_->set(counter()->now());
  const RandomRange from = now();
  copy->move([&](RandomRange& at) { at = from; });
  return copy.release();
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
static const CapturedRandom kRefuseCaptured{
    [](const std::shared_ptr<Counter>&, const c10::Stream& stream,
       RandomMove) -> RandomRange {
      TORCH_CHECK_NOT_IMPLEMENTED(
          false, "A generator cannot be used on stream ", stream.id(), " of ",
          stream.device(), " while it is captured; every run would draw ",
          "the same numbers.");
    },
    [](const RandomRange& range) -> RandomState {
      TORCH_CHECK_VALUE(false, "This state is of capture base ", range.number,
                        ", and this process has no such base.");
    }};

static std::atomic<const CapturedRandom*> captured_random{&kRefuseCaptured};

static const CapturedRandom& capturedRandom() { return *captured_random; }

void setCapturedRandom(const CapturedRandom* functions) {
  captured_random = functions ? functions : &kRefuseCaptured;
}

// [hooks.generator.move] Every use of a generator moves it, or asks where it stands; in a capture, this is recorded.
RandomRange Generator::move(RandomMove move) const {
  if (const auto stream = capturedStream())
    return capturedRandom().move(counter(), *stream, move);
  return {counter()->move(move)};
}

std::optional<c10::Stream> Generator::capturedStream() const {
  // Seeds and states must not start a device.
  int is_started = 0;
  check(orDeviceIsStarted(device().index(), &is_started));
  if (!is_started) return std::nullopt;
  const c10::Stream stream = currentStream(device().index());
  return isCaptured(stream) ? std::optional(stream) : std::nullopt;
}

RandomRange Generator::reserve(uint64_t count) {
  return move([&](RandomRange& at) { at.state.offset += count; });
}

RandomRange Generator::now() const {
  return move([](RandomRange&) {});
}

RandomRange Generator::placed(const RandomRange& at) const {
  if (!at.number || capturedStream()) return at;
  return {capturedRandom().latest(at)};
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
