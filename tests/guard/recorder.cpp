// SPDX-License-Identifier: BSD-3-Clause
// Stands between PyTorch and a backend's guard: notes which of its functions
// PyTorch calls, and can act as if the guard had left one of them out.
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <mutex>
#include <set>
#include <string>

namespace {

using Interface = c10::impl::DeviceGuardImplInterface;

struct Notes {
  std::mutex mutex;
  std::set<std::string> called;
  std::string left_out;
};

Notes& notes() {
  static Notes& notes = *new Notes;
  return notes;
}

/// Notes the call. @returns whether the function is to be as if left out.
bool leftOut(const char* name) {
  std::lock_guard lock(notes().mutex);
  notes().called.insert(name);
  return notes().left_out == name;
}

class Recorder final : public Interface {
 public:
  explicit Recorder(const Interface* real) : real_(real) {}

  // Those that PyTorch gives no default: they cannot be left out.
  c10::DeviceType type() const override {
    leftOut("type");
    return real_->type();
  }
  c10::Device exchangeDevice(c10::Device device) const override {
    leftOut("exchangeDevice");
    return real_->exchangeDevice(device);
  }
  c10::Device getDevice() const override {
    leftOut("getDevice");
    return real_->getDevice();
  }
  void setDevice(c10::Device device) const override {
    leftOut("setDevice");
    real_->setDevice(device);
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    leftOut("uncheckedSetDevice");
    real_->uncheckedSetDevice(device);
  }
  c10::Stream getStream(c10::Device device) const override {
    leftOut("getStream");
    return real_->getStream(device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    leftOut("exchangeStream");
    return real_->exchangeStream(stream);
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    leftOut("deviceCount");
    return real_->deviceCount();
  }

  // The others.
  c10::Stream getDefaultStream(c10::Device device) const override {
    return leftOut("getDefaultStream") ? Interface::getDefaultStream(device)
                                       : real_->getDefaultStream(device);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device,
                                      bool high) const override {
    return leftOut("getStreamFromGlobalPool")
               ? Interface::getStreamFromGlobalPool(device, high)
               : real_->getStreamFromGlobalPool(device, high);
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return leftOut("getNewStream") ? Interface::getNewStream(device, priority)
                                   : real_->getNewStream(device, priority);
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return leftOut("getStreamNativeHandle")
               ? Interface::getStreamNativeHandle(stream)
               : real_->getStreamNativeHandle(stream);
  }
  bool queryStream(const c10::Stream& stream) const override {
    return leftOut("queryStream") ? Interface::queryStream(stream)
                                  : real_->queryStream(stream);
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    leftOut("synchronizeStream") ? Interface::synchronizeStream(stream)
                                 : real_->synchronizeStream(stream);
  }
  bool isStreamCapturing(const c10::Stream& stream) const override {
    return leftOut("isStreamCapturing") ? Interface::isStreamCapturing(stream)
                                        : real_->isStreamCapturing(stream);
  }
  void recordDataPtrOnStream(const c10::DataPtr& data,
                             const c10::Stream& stream) const override {
    leftOut("recordDataPtrOnStream")
        ? Interface::recordDataPtrOnStream(data, stream)
        : real_->recordDataPtrOnStream(data, stream);
  }
  void record(void** event, const c10::Stream& stream,
              const c10::DeviceIndex index,
              const c10::EventFlag flag) const override {
    leftOut("record") ? Interface::record(event, stream, index, flag)
                      : real_->record(event, stream, index, flag);
  }
  void block(void* event, const c10::Stream& stream) const override {
    leftOut("block") ? Interface::block(event, stream)
                     : real_->block(event, stream);
  }
  bool queryEvent(void* event) const override {
    return leftOut("queryEvent") ? Interface::queryEvent(event)
                                 : real_->queryEvent(event);
  }
  void synchronizeEvent(void* event) const override {
    leftOut("synchronizeEvent") ? Interface::synchronizeEvent(event)
                                : real_->synchronizeEvent(event);
  }
  double elapsedTime(void* start, void* end,
                     const c10::DeviceIndex index) const override {
    return leftOut("elapsedTime") ? Interface::elapsedTime(start, end, index)
                                  : real_->elapsedTime(start, end, index);
  }
  void destroyEvent(void* event,
                    const c10::DeviceIndex index) const noexcept override {
    leftOut("destroyEvent") ? Interface::destroyEvent(event, index)
                            : real_->destroyEvent(event, index);
  }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    leftOut("synchronizeDevice") ? Interface::synchronizeDevice(index)
                                 : real_->synchronizeDevice(index);
  }
  c10::DeviceCapability getDeviceCapability(c10::Device device) const override {
    return leftOut("getDeviceCapability")
               ? Interface::getDeviceCapability(device)
               : real_->getDeviceCapability(device);
  }

 private:
  const Interface* real_;
};

}  // namespace

extern "C" {

void recorder_install() {
  auto& place = c10::impl::device_guard_impl_registry[static_cast<size_t>(
      c10::DeviceType::PrivateUse1)];
  place.store(new Recorder(place.load()));
}

/// From now on as if the guard had left out `name`; empty: none.
void recorder_leave_out(const char* name) {
  std::lock_guard lock(notes().mutex);
  notes().left_out = name;
}

/// What C++ code that is generic over devices may ask; an error, or null.
const char* recorder_ask(const char* what) {
  static std::string error;
  const c10::impl::VirtualGuardImpl guard(c10::DeviceType::PrivateUse1);
  const c10::Device device(c10::DeviceType::PrivateUse1, 0);
  try {
    if (what == std::string("getDefaultStream"))
      guard.getDefaultStream(device);
    else
      guard.getStreamFromGlobalPool(device);
    return nullptr;
  } catch (const c10::Error& caught) {
    error = caught.what_without_backtrace();
    return error.c_str();
  }
}

/// What was called since the last time, one name a line.
const char* recorder_called() {
  static std::string names;
  std::lock_guard lock(notes().mutex);
  names.clear();
  for (const std::string& name : notes().called) names += name + "\n";
  notes().called.clear();
  return names.c_str();
}
}
