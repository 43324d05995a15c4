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
#define PURE(result, name, parameters, arguments, ...) \
  result name parameters const __VA_ARGS__ override {  \
    leftOut(#name);                                    \
    return real_->name arguments;                      \
  }
  PURE(c10::DeviceType, type, (), ())
  PURE(c10::Device, exchangeDevice, (c10::Device device), (device))
  PURE(c10::Device, getDevice, (), ())
  PURE(void, setDevice, (c10::Device device), (device))
  PURE(void, uncheckedSetDevice, (c10::Device device), (device), noexcept)
  PURE(c10::Stream, getStream, (c10::Device device), (device))
  PURE(c10::Stream, exchangeStream, (c10::Stream stream), (stream))
  PURE(c10::DeviceIndex, deviceCount, (), (), noexcept)

  // The others.
#define OTHER(result, name, parameters, arguments, ...)     \
  result name parameters const __VA_ARGS__ override {       \
    return leftOut(#name) ? this->Interface::name arguments \
                          : real_->name arguments;          \
  }
  OTHER(c10::Stream, getDefaultStream, (c10::Device device), (device))
  OTHER(c10::Stream, getStreamFromGlobalPool, (c10::Device device, bool high),
        (device, high))
  OTHER(c10::Stream, getNewStream, (c10::Device device, int priority),
        (device, priority))
  OTHER(void*, getStreamNativeHandle, (const c10::Stream stream), (stream))
  OTHER(bool, queryStream, (const c10::Stream& stream), (stream))
  OTHER(void, synchronizeStream, (const c10::Stream& stream), (stream))
  OTHER(bool, isStreamCapturing, (const c10::Stream& stream), (stream))
  OTHER(void, recordDataPtrOnStream,
        (const c10::DataPtr& data, const c10::Stream& stream), (data, stream))
  OTHER(void, record,
        (void** event, const c10::Stream& stream, const c10::DeviceIndex index,
         const c10::EventFlag flag),
        (event, stream, index, flag))
  OTHER(void, block, (void* event, const c10::Stream& stream), (event, stream))
  OTHER(bool, queryEvent, (void* event), (event))
  OTHER(void, synchronizeEvent, (void* event), (event))
  OTHER(double, elapsedTime,
        (void* start, void* end, const c10::DeviceIndex index),
        (start, end, index))
  OTHER(void, destroyEvent, (void* event, const c10::DeviceIndex index),
        (event, index), noexcept)
  OTHER(void, synchronizeDevice, (const c10::DeviceIndex index), (index))
  OTHER(c10::DeviceCapability, getDeviceCapability, (c10::Device device),
        (device))
#undef PURE
#undef OTHER

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
