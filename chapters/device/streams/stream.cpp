// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/waiting.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

namespace openreg {
namespace {

// [device.stream.number] PyTorch's number and the driver's handle convert into each other.
c10::Stream streamOf(c10::DeviceIndex index, c10::StreamId number) {
  return c10::Stream(c10::Stream::UNSAFE, {kDeviceType, index}, number);
}

orStream_t defaultHandle(c10::DeviceIndex index) {
  static std::array<std::atomic<orStream_t>, kMaxDevices> handles{};
  orStream_t handle = handles[index].load(std::memory_order_relaxed);
  if (!handle) {
    check(orDeviceGetDefaultStream(&handle, index));
    handles[index] = handle;
  }
  return handle;
}

// [device.stream.pool] Streams live as long as the process, and requests take them in turn.
/// PyTorch copies streams freely, and never reports that it needs one no more.
class Pool {
 public:
  orStream_t next(c10::DeviceIndex index, int priority) {
    std::call_once(once_, [&] {
      DeviceScope scope(index);
      for (orStream_t& stream : streams_) {
        check(orStreamCreateWithPriority(&stream, 0, priority));
      }
    });
    return streams_[turn_++ % streams_.size()];
  }

 private:
  std::once_flag once_;
  std::array<orStream_t, 32> streams_{};
  std::atomic<unsigned> turn_{0};
};

// [device.stream.state] Each thread has its own current streams; 0 is the default stream.
thread_local std::array<c10::StreamId, kMaxDevices> current_streams{};

// [-]
}  // namespace

// [device.stream.native] Only streams of our own devices have a handle.
orStream_t nativeStream(const c10::Stream& stream) {
  TORCH_CHECK_VALUE(stream.device_type() == kDeviceType, "The stream is of ",
                    stream.device(),
                    "; openreg can use streams of openreg devices only.");
  if (stream.id() == 0)
    return defaultHandle(resolveDevice(stream.device_index()));
  return reinterpret_cast<orStream_t>(stream.id());
}

void checkStream(const c10::Stream& stream) {
  int device = -1;
  check(orStreamGetDevice(nativeStream(stream), &device));
  const c10::DeviceIndex index = resolveDevice(stream.device_index());
  TORCH_CHECK_VALUE(device == index, "Stream ", stream.id(),
                    " is of openreg:", device, ", not of openreg:", int{index},
                    ".");
}

c10::Stream streamOfHandle(orStream_t handle, c10::DeviceIndex index) {
  const auto number = reinterpret_cast<c10::StreamId>(handle);
  const bool is_default = handle == defaultHandle(resolveDevice(index));
  const c10::Stream stream = streamOf(index, is_default ? 0 : number);
  checkStream(stream);
  return stream;
}

// [device.stream.obtain] A stream is the default one, or comes from the pool.
c10::Stream defaultStream(c10::DeviceIndex index) {
  return streamOf(resolveDevice(index), 0);
}

c10::Stream poolStream(c10::DeviceIndex index, int priority) {
  static std::array<std::array<Pool, 3>, kMaxDevices> pools;
  index = resolveDevice(index);
  priority = std::clamp(priority, kGreatestPriority, 0);
  orStream_t handle = pools[index][-priority].next(index, priority);
  return streamOf(index, reinterpret_cast<c10::StreamId>(handle));
}

// [device.stream.captured.ask] The driver answers, because a stream can join a capture without our knowing.
bool isCaptured(const c10::Stream& stream) {
  orStreamCaptureStatus status = orStreamCaptureStatusNone;
  orStreamIsCapturing(nativeStream(stream), &status);
  return status != orStreamCaptureStatusNone;
}

// [device.stream.event] The cache must know when a stream is done with a block that is freed.
/// Whether the calling thread may wait for all devices; if so, it has.
static bool synchronizeAll() {
  const LeavesRefusals leaves;
  for (c10::DeviceIndex index = 0; index < deviceCount(); ++index) {
    DeviceScope scope(index);
    const orError_t error = orDeviceSynchronize();
    if (error == orErrorNotPermitted ||
        error == orErrorStreamCaptureUnsupported) {
      return false;
    }
  }
  return true;
}

orEvent_t eventIn(const c10::Stream& stream) noexcept {
  WithoutGil others_run;
  orEvent_t event = nullptr;
  if (orEventCreateWithFlags(&event, orEventDisableTiming) == orSuccess &&
      (isCaptured(stream) ||
       orEventRecord(event, nativeStream(stream)) == orSuccess)) {
    return event;
  }
  // There are too many events, or the stream was destroyed and may still be
  // running, or its device has failed.
  if (synchronizeAll()) return event;
  orEventDestroy(event);
  return nullptr;
}

bool isReached(orEvent_t event) noexcept {
  if (!event) return synchronizeAll();
  const LeavesRefusals leaves;
  if (orEventQuery(event) == orErrorNotReady) return false;
  orEventDestroy(event);
  return true;
}

// [device.stream.wait] A stream waits for another one, without the host.
void waitForStream(const c10::Stream& stream, const c10::Stream& other) {
  if (stream == other) return;
  orEvent_t event = eventIn(other);
  TORCH_CHECK(event || isReached(event), stream, " cannot wait for ", other,
              ", where no event can be recorded, and the host must not wait; "
              "end the capture first.");
  if (!event) return;     // The host has waited.
  WithoutGil others_run;  // A full queue makes the host wait.
  const orError_t error = orStreamWaitEvent(nativeStream(stream), event, 0);
  orEventDestroy(event);
  check(error);
}

// [device.stream.current] New work goes to the current stream of the device.
c10::Stream currentStream(c10::DeviceIndex index) {
  index = resolveDevice(index);
  return streamOf(index, current_streams[index]);
}

orStream_t currentNativeStream(c10::DeviceIndex index) {
  index = resolveDevice(index);
  const c10::StreamId number = current_streams[index];
  return number ? reinterpret_cast<orStream_t>(number) : defaultHandle(index);
}

c10::Stream exchangeStream(c10::Stream stream) {
  checkStream(stream);
  const c10::DeviceIndex index = resolveDevice(stream.device_index());
  return streamOf(index, std::exchange(current_streams[index], stream.id()));
}

// [-]
}  // namespace openreg
