// SPDX-License-Identifier: BSD-3-Clause
#include "hooks/generator.h"

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
static void endBackward(int64_t index) {
  if (orIsForked() || !isStarted(index)) return;
  std::async(std::launch::async, [index] {
    const at::Tensor leaf = at::empty({1}, at::Device(kDevice, index)).requires_grad_();
    leaf.view(-1).backward(leaf.detach());
  }).wait();  // Not get(): the program has ended, and an error could not help it.
}

// [first.hooks.operators] Two operators of our own hand to Python what it needs of this file.
TORCH_LIBRARY_FRAGMENT(tiny, m) {
  m.def("default_generator(int index) -> Generator?",
        [](int64_t index) -> at::Generator { return defaultGenerator(index); });
  m.def("end_backward(int index) -> ()", &endBackward);
}

// [-]
}  // namespace tiny
