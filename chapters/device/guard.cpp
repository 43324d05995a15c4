// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/memory/allocator.h"
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/differences.h"
#include "torch_openreg/common/waiting.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace openreg {

// [device.guard.capability] We store, fill and copy every dtype except those smaller than a byte.
static c10::DeviceCapability capability() {
  c10::DeviceCapability capability;
  auto& all = capability.capability_data;
  all.capability_bits = 0;
#define SUPPORT(_, Type) all.supported_scalar_types.has_##Type = 1;
  AT_FORALL_SCALAR_TYPES_WITH_COMPLEX(SUPPORT)
#undef SUPPORT
  auto& types = all.supported_scalar_types;
  types.has_UInt16 = types.has_UInt32 = types.has_UInt64 = 1;
  types.has_QInt8 = types.has_QUInt8 = types.has_QInt32 = 1;
  // The bits are in the order of the enumeration.
  if (kBComplex32)
    all.capability_bits |= uint64_t{1} << static_cast<int>(*kBComplex32);
  return capability;
}

// [device.guard] How PyTorch switches devices, and switches back.
class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kDeviceType; }
  c10::DeviceIndex deviceCount() const noexcept override {
    return openreg::deviceCount();
  }
  c10::Device getDevice() const override {
    return {kDeviceType, currentDevice()};
  }

  c10::Device exchangeDevice(c10::Device device) const override {
    return {kDeviceType, maybeExchangeDevice(device.index())};
  }
  void setDevice(c10::Device device) const override {
    maybeExchangeDevice(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    // Called from destructors, so a bad index must not throw.
    orSetDevice(device.index());
  }
  void synchronizeDevice(c10::DeviceIndex index) const override {
    openreg::synchronizeDevice(index);
  }
  c10::DeviceCapability getDeviceCapability(c10::Device device) const override {
    resolveDevice(device.index());
    return capability();
  }

  // [device.guard.streams] PyTorch obtains streams from the guard, and makes one current.
  c10::Stream getStream(c10::Device device) const override {
    return currentStream(device.index());
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return defaultStream(device.index());
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device,
                                      bool high_priority) const override {
    return poolStream(device.index(), high_priority ? kGreatestPriority : 0);
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override {
    return poolStream(device.index(), priority);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return openreg::exchangeStream(stream);
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override {
    return nativeStream(stream);
  }
  bool queryStream(const c10::Stream& stream) const override {
    WithoutGil others_run;  // A question may run a step of the device.
    return isDone(orStreamQuery(nativeStream(stream)));
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    waitFor([&] { return orStreamSynchronize(nativeStream(stream)); });
  }
  bool isStreamCapturing(const c10::Stream& stream) const override {
    return isCaptured(stream);
  }
  void recordDataPtrOnStream(const c10::DataPtr& data,
                             const c10::Stream& stream) const override {
    allocator().recordStream(data, stream);
  }

  // [device.guard.events] An event is created when it is first recorded.
  void record(void** event, const c10::Stream& stream,
              const c10::DeviceIndex index,
              const c10::EventFlag flag) const override {
    TORCH_CHECK_VALUE(index == -1 || index == stream.device_index(),
                      "The event is of openreg:", int{index},
                      ", the stream of ", stream.device(),
                      "; they must be of one device.");
    if (!*event) {
      orEvent_t created;
      check(orEventCreateWithFlags(&created,
                                   flag == c10::EventFlag::BACKEND_DEFAULT
                                       ? orEventEnableTiming
                                       : orEventDisableTiming));
      *event = created;
    }
    WithoutGil others_run;  // A full queue makes the host wait.
    check(orEventRecord(static_cast<orEvent_t>(*event), nativeStream(stream)));
  }
  // [device.guard.events.wait] Streams and the host wait for the point that an event recorded.
  void block(void* event, const c10::Stream& stream) const override {
    if (!event) return;
    WithoutGil others_run;
    check(orStreamWaitEvent(nativeStream(stream), static_cast<orEvent_t>(event),
                            0));
  }
  bool queryEvent(void* event) const override {
    if (!event) return true;
    WithoutGil others_run;
    return isDone(orEventQuery(static_cast<orEvent_t>(event)));
  }
  void synchronizeEvent(void* event) const override {
    if (!event) return;
    waitFor([&] { return orEventSynchronize(static_cast<orEvent_t>(event)); });
  }
  double elapsedTime(void* start, void* end,
                     const c10::DeviceIndex) const override {
    WithoutGil others_run;
    float ms = 0;
    check(orEventElapsedTime(&ms, static_cast<orEvent_t>(start),
                             static_cast<orEvent_t>(end)));
    return ms;
  }
  void destroyEvent(void* event,
                    const c10::DeviceIndex) const noexcept override {
    // Called from destructors, perhaps in a forked child, so errors are
    // ignored.
    if (!event) return;
    orEventDestroy(static_cast<orEvent_t>(event));
  }
};

// [device.guard.register] This line puts the guard into PyTorch's registry.
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

// [-]
}  // namespace openreg
