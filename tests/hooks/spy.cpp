// SPDX-License-Identifier: BSD-3-Clause
// Loaded before everything else, this library stands between PyTorch and our
// hooks. It counts what PyTorch asks, and takes one answer away: that one comes
// from PyTorch's base class then, as if we had not overridden it.
#include <ATen/Context.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <dlfcn.h>

#include <map>
#include <mutex>
#include <string>

namespace {

std::mutex mutex;
std::string removed;
std::map<std::string, int> asked;

/// Counts; says whether our own hooks may answer.
bool ours(const char* hook) {
  std::lock_guard lock(mutex);
  ++asked[hook];
  return removed != hook;
}

using Base = at::PrivateUse1HooksInterface;

class Spy final : public Base {
 public:
  explicit Spy(Base* hooks) : hooks_(hooks) {}

#define SPY(result, hook, parameters, arguments)                              \
  result hook parameters const override {                                     \
    return ours(#hook) ? hooks_->hook arguments : this->Base::hook arguments; \
  }
  SPY(bool, isBuilt, (), ())
  SPY(bool, isAvailable, (), ())
  SPY(bool, hasPrimaryContext, (c10::DeviceIndex index), (index))
  SPY(void, init, (), ())
  SPY(c10::DeviceIndex, deviceCount, (), ())
  SPY(void, setCurrentDevice, (c10::DeviceIndex index), (index))
  SPY(c10::DeviceIndex, getCurrentDevice, (), ())
  SPY(c10::DeviceIndex, exchangeDevice, (c10::DeviceIndex index), (index))
  SPY(c10::DeviceIndex, maybeExchangeDevice, (c10::DeviceIndex index), (index))
  SPY(bool, isPinnedPtr, (const void* data), (data))
  SPY(at::Allocator*, getPinnedMemoryAllocator, (), ())
  SPY(c10::Device, getDeviceFromPtr, (void* data), (data))
  SPY(const at::Generator&, getDefaultGenerator, (c10::DeviceIndex index),
      (index))
  SPY(at::Generator, getNewGenerator, (c10::DeviceIndex index), (index))
  SPY(void, resizePrivateUse1Bytes, (const c10::Storage& storage, size_t bytes),
      (storage, bytes))
#undef SPY

 private:
  Base* hooks_;
};

/// What `call` throws, as Python would say it; null if it throws nothing.
template <class Call>
const char* refusal(Call call) {
  static std::string said;
  try {
    call();
    return nullptr;
  } catch (const c10::NotImplementedError& error) {
    said =
        std::string("NotImplementedError: ") + error.what_without_backtrace();
  } catch (const c10::Error& error) {
    said = std::string("RuntimeError: ") + error.what_without_backtrace();
  }
  return said.c_str();
}

}  // namespace

// PyTorch's own function of this name is found behind ours.
void at::RegisterPrivateUse1HooksInterface(Base* hooks) {
  using Register = void (*)(Base*);
  const char* name =
      "_ZN2at33RegisterPrivateUse1HooksInterfaceEPNS_"
      "25PrivateUse1HooksInterfaceE";
  reinterpret_cast<Register>(dlsym(RTLD_NEXT, name))(new Spy(hooks));
}

extern "C" {

void spy_remove(const char* hook) {
  std::lock_guard lock(mutex);
  removed = hook;
  asked.clear();
}

int spy_asked(const char* hook) {
  std::lock_guard lock(mutex);
  return asked[hook];
}

// What only C++ can call.
const char* spy_manual_seed(uint64_t seed) {
  return refusal([&] { at::manual_seed(seed); });
}

const char* spy_device_of(void* data, int* index) {
  return refusal([&] {
    *index =
        at::globalContext().getDeviceFromPtr(data, at::kPrivateUse1).index();
  });
}
}
