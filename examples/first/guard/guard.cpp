// SPDX-License-Identifier: BSD-3-Clause
#include "guard/guard.h"

#include <c10/core/DeviceGuard.h>

#include <map>
#include <utility>

namespace tiny {

// [first.guard.streams] A stream's number in PyTorch is the driver's pointer; 0 is the default stream.
c10::DeviceIndex currentDevice() {
  int device = 0;
  check(orGetDevice(&device));
  return static_cast<c10::DeviceIndex>(device);
}

static c10::DeviceIndex resolved(c10::DeviceIndex index) {
  return index < 0 ? currentDevice() : index;
}

static c10::Stream streamOf(c10::DeviceIndex index, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, {kDevice, resolved(index)}, id);
}

orStream_t handleOf(const c10::Stream& stream) {
  if (stream.id()) return reinterpret_cast<orStream_t>(stream.id());
  orStream_t handle = nullptr;
  check(orDeviceGetDefaultStream(&handle, stream.device_index()));
  return handle;
}

// [first.guard.current] Which stream is current is ours to remember, for each thread and device.
static thread_local std::map<c10::DeviceIndex, c10::StreamId> current;

c10::Stream currentStream(c10::DeviceIndex index) {
  return streamOf(index, current[resolved(index)]);
}

// [first.guard.devices] PyTorch switches devices through these, and switches back when a scope ends.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kDevice; }
  c10::DeviceIndex deviceCount() const noexcept override {
    int count = 0;
    orGetDeviceCount(&count);  // Must not throw: no driver is no device.
    return static_cast<c10::DeviceIndex>(count);
  }
  c10::Device getDevice() const override { return {kDevice, currentDevice()}; }
  void setDevice(c10::Device device) const override {
    if (device.has_index()) check(orSetDevice(device.index()));
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    orSetDevice(device.index());
  }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }

  // [first.guard.choose] A new stream is never destroyed: PyTorch does not say when it is done with one.
  c10::Stream getStream(c10::Device device) const override { return currentStream(device.index()); }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return streamOf(device.index(), 0);
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    const c10::DeviceGuard guard(device);
    orStream_t created = nullptr;
    check(orStreamCreateWithPriority(&created, 0, priority));
    return streamOf(device.index(), reinterpret_cast<c10::StreamId>(created));
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const auto before = std::exchange(current[stream.device_index()], stream.id());
    return streamOf(stream.device_index(), before);
  }

  // [first.guard.wait] Work runs later, so the host can ask whether it is done, and wait.
  bool queryStream(const c10::Stream& stream) const override {
    return isReady(orStreamQuery(handleOf(stream)));
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    check(orStreamSynchronize(handleOf(stream)));
  }
  void synchronizeDevice(c10::DeviceIndex index) const override {
    const c10::DeviceGuard guard({kDevice, index});
    check(orDeviceSynchronize());
  }

  // [first.guard.events] An event marks a point in a stream; it is created when it is first recorded.
  void record(void** event, const c10::Stream& stream, c10::DeviceIndex,
              c10::EventFlag flag) const override {
    const bool timed = flag == c10::EventFlag::BACKEND_DEFAULT;
    if (!*event) {
      orEvent_t created = nullptr;
      check(orEventCreateWithFlags(&created, timed ? orEventEnableTiming : orEventDisableTiming));
      *event = created;
    }
    check(orEventRecord(static_cast<orEvent_t>(*event), handleOf(stream)));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (!event) return;
    check(orStreamWaitEvent(handleOf(stream), static_cast<orEvent_t>(event), 0));
  }
  // [first.guard.events.host] The host asks, waits, measures and destroys; null was never recorded.
  bool queryEvent(void* event) const override {
    return !event || isReady(orEventQuery(static_cast<orEvent_t>(event)));
  }
  void synchronizeEvent(void* event) const override {
    if (event) check(orEventSynchronize(static_cast<orEvent_t>(event)));
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    if (event) orEventDestroy(static_cast<orEvent_t>(event));
  }
  double elapsedTime(void* start, void* end, c10::DeviceIndex) const override {
    float milliseconds = 0;
    check(orEventElapsedTime(&milliseconds, static_cast<orEvent_t>(start),
                             static_cast<orEvent_t>(end)));
    return milliseconds;
  }
};

// [first.guard.register] One line puts the guard into PyTorch's table of guards.
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

// [-]
}  // namespace tiny
