// SPDX-License-Identifier: BSD-3-Clause
#include "hooks/generator.h"
#include "kernels/launch.h"

#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <future>
#include <map>

namespace tiny {

// [first.hooks.default] Each device has one default generator, made when it is first asked for.
static c10::DeviceIndex existing(c10::DeviceIndex index) {
  const c10::DeviceGuard guard({kDevice, index});  // Refuses what does not exist.
  return currentDevice();
}

const at::Generator& defaultGenerator(c10::DeviceIndex index) {
  static std::mutex mutex;
  static auto& all = *new std::map<c10::DeviceIndex, at::Generator>;
  index = existing(index);
  std::lock_guard lock(mutex);
  if (!all.count(index)) all[index] = at::make_generator<Generator>(index);
  return all[index];
}

// [first.hooks.answers] Autograd asks which devices are in use; each gets a thread for its gradients.
bool isStarted(c10::DeviceIndex index) {
  int started = 0;
  check(orDeviceIsStarted(index, &started));
  return started;
}

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex index) const override { return isStarted(index); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return defaultGenerator(index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return at::make_generator<Generator>(existing(index));
  }
};

// [first.hooks.register] PyTorch keeps one hooks object, from now to the end of the process.
static const bool registered = (at::RegisterPrivateUse1HooksInterface(new Hooks), true);

// [first.hooks.end] A thread of autograd that has ended one more pass has let go of the program's passes.
static void endBackward() {
  int count = 0;
  if (orIsForked() || orGetDeviceCount(&count)) return;
  for (int index = 0; index < count; ++index)
    if (isStarted(index))
      std::async(std::launch::async, [index] {
        const at::Tensor leaf = at::empty({0}, at::Device(kDevice, index)).requires_grad_();
        leaf.view(-1).backward(leaf.detach());
      }).wait();  // Not get(): the program has ended, and an error could not help it.
}

// [first.hooks.operators] Two operators of our own hand to Python what it needs of this file.
TORCH_LIBRARY_FRAGMENT(tiny, m) {
  m.def("default_generator(int index) -> Generator?",
        [](int64_t index) -> at::Generator { return defaultGenerator(index); });
  m.def("end_backward() -> ()", &endBackward);
}

// [first.hooks.positions] A launch reserves a position for each number, so the order of work does not matter.
using Chosen = std::optional<at::Generator>;

static Generator::State reserve(const Chosen& chosen, const at::Tensor& self) {
  auto* own = at::get_generator_or_default<Generator>(chosen, defaultGenerator(self.get_device()));
  const std::lock_guard lock(own->mutex_);
  const Generator::State first = own->state;
  own->state.offset += self.numel();
  return first;
}

// [first.hooks.draw] Philox computes each number from the seed and its position.
template <class Transform>
at::Tensor& draw(const char* name, at::Tensor& self, const Chosen& chosen, Transform transform) {
  constexpr bool flips = std::is_same_v<std::invoke_result_t<Transform, at::Philox4_32&>, bool>;
  TORCH_CHECK_TYPE(flips || self.is_floating_point(), name,
                   "_ on tiny needs floating-point numbers, not ", self.scalar_type(), ".");
  if (!isPlain(self)) {
    at::Tensor plain = at::empty(self.sizes(), self.options().dtype(at::kFloat));
    return self.copy_(draw(name, plain, chosen, transform));
  }
  const Generator::State first = reserve(chosen, self);
  launch(self, name, [transform, first, n = self.numel(), data = self.data_ptr<float>()] {
    float* numbers = openreg::onDevice(data);
    for (int64_t i = 0; i < n; ++i) {
      at::Philox4_32 engine(first.seed, first.offset + i);
      numbers[i] = transform(engine);
    }
  });
  return self;
}

// [first.hooks.distributions] Initial weights need the first two of these, and random masks the third. A fraction is below 1 in a dtype that holds its bits.
static float fraction(at::Philox4_32& engine, int bits = 24) {
  return static_cast<float>(engine() >> (32 - bits)) / (1 << bits);
}

static at::Tensor& uniform(at::Tensor& self, double from, double to, Chosen chosen) {
  TORCH_CHECK(from <= to, "uniform_ needs from <= to, but got ", from, " and ", to, ".");
  const int bits = self.dtype() == at::kHalf ? 11 : self.dtype() == at::kBFloat16 ? 8 : 24;
  return draw("uniform", self, chosen, [from, to, bits](at::Philox4_32& engine) {
    return static_cast<float>(from + (to - from) * fraction(engine, bits));
  });
}

static at::Tensor& normal(at::Tensor& self, double mean, double deviation, Chosen chosen) {
  TORCH_CHECK(deviation >= 0, "normal_ needs std >= 0, but got ", deviation, ".");
  return draw("normal", self, chosen, [mean, deviation](at::Philox4_32& engine) {
    return static_cast<float>(mean + deviation * engine.randn(10));
  });
}

static at::Tensor& bernoulli(at::Tensor& self, double p, Chosen chosen) {
  TORCH_CHECK(0 <= p && p <= 1, "bernoulli_ needs p in [0, 1], but got ", p, ".");
  return draw("bernoulli", self, chosen,
              [p](at::Philox4_32& engine) { return fraction(engine) < p; });
}

// [first.hooks.random] The names by which PyTorch calls them.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("uniform_", &uniform);
  m.impl("normal_", &normal);
  m.impl("bernoulli_.float", &bernoulli);
}

// [-]
}  // namespace tiny
