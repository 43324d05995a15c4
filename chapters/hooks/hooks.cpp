// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/runtime.h"
#include "torch_openreg/chapters/hooks/generator.h"
#include "torch_openreg/chapters/hooks/hooks.h"
#include "torch_openreg/chapters/hooks/host_memory.h"
#include "torch_openreg/chapters/hooks/storage/storage.h"
#include "torch_openreg/common/check.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>

namespace openreg {

// [hooks.answers] The answers to these three questions must not start a device.
class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return openreg::deviceCount() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex index) const override {
    int started = 0;
    check(orDeviceIsStarted(index, &started));
    return started;
  }

  // [hooks.start] The first use of a device starts it; in a forked child it cannot start.
  void init() const override {
    if (orIsForked()) raiseForked();
  }

  // [hooks.device] The current device, for C++ code that asks the hooks instead of the guard.
  c10::DeviceIndex deviceCount() const override {
    return openreg::deviceCount();
  }
  c10::DeviceIndex getCurrentDevice() const override { return currentDevice(); }
  void setCurrentDevice(c10::DeviceIndex index) const override {
    openreg::exchangeDevice(index);
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return openreg::exchangeDevice(index);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return openreg::maybeExchangeDevice(index);
  }

  // [hooks.memory] Which device owns an address, and where pinned memory comes from.
  c10::Device getDeviceFromPtr(void* data) const override {
    orPointerAttributes attributes;
    check(orPointerGetAttributes(&attributes, data));
    TORCH_CHECK_VALUE(
        attributes.type == orMemoryTypeDevice, data,
        " was not allocated on an openreg device, so it has no device index.");
    return {kDeviceType, static_cast<c10::DeviceIndex>(attributes.device)};
  }
  bool isPinnedPtr(const void* data) const override { return isPinned(data); }
  at::Allocator* getPinnedMemoryAllocator() const override {
    return &hostAllocator();
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage,
                              size_t bytes) const override {
    resizeStorage(storage, bytes);
  }

  // [hooks.generators] The default generator of a device, and new ones.
  const at::Generator& getDefaultGenerator(
      c10::DeviceIndex index) const override {
    return defaultGenerator(index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return at::make_generator<Generator>(resolveDevice(index));
  }
};

// [hooks.register] The hooks are registered once, when the library is loaded, and never destroyed.
static const bool hooks_registered = [] {
  // Registering twice throws, which would end the process here.
  if (at::isPrivateUse1HooksRegistered()) return false;
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

bool hooksAreOurs() { return hooks_registered; }

// [-]
}  // namespace openreg
