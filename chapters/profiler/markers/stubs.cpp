// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/streams/stream.h"
#include "torch_openreg/common/check.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"
#include "torch_openreg/common/waiting.h"

#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

#include <memory>

namespace openreg {
namespace {

using torch::profiler::impl::ProfilerVoidEventStub;

// [profiler.stubs] The old profiler records an event before and after each operator, and asks for the time between.
struct TimedEvent {
  explicit TimedEvent(c10::DeviceIndex index) : device(index) {
    check(orEventCreate(&handle));
  }
  ~TimedEvent() { orEventDestroy(handle); }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;

  orEvent_t handle = nullptr;
  c10::DeviceIndex device;
};

class Stubs final : public torch::profiler::impl::ProfilerStubs {
 public:
  bool enabled() const override { return true; }
  void record(c10::DeviceIndex* device, ProfilerVoidEventStub* event,
              int64_t* cpu_ns) const override {
    const c10::DeviceIndex index = currentDevice();
    auto timed = std::make_shared<TimedEvent>(index);
    WithoutGil others_run;
    check(orEventRecord(timed->handle, currentNativeStream(index)));
    if (device) *device = index;
    if (cpu_ns) *cpu_ns = c10::getTime();
    *event = std::move(timed);
  }
  /// In microseconds. 0 if the operator left another device current.
  float elapsed(const ProfilerVoidEventStub* begin,
                const ProfilerVoidEventStub* end) const override {
    const auto& from = *static_cast<const TimedEvent*>(begin->get());
    const auto& to = *static_cast<const TimedEvent*>(end->get());
    if (from.device != to.device) return 0;
    WithoutGil others_run;
    float ms = 0;
    check(orEventSynchronize(to.handle));
    check(orEventElapsedTime(&ms, from.handle, to.handle));
    return ms * 1000;
  }

  // [profiler.stubs.rest] Ranges go to the driver, which passes them on to its observer.
  void mark(const char* name) const override {
    rangePush(name);
    rangePop();
  }
  void rangePush(const char* name) const override { check(orRangePush(name)); }
  void rangePop() const override { check(orRangePop()); }
  void onEachDevice(std::function<void(int)> call) const override {
    for (c10::DeviceIndex index = 0; index < deviceCount(); ++index) {
      DeviceScope scope(index);
      call(index);
    }
  }
  void synchronize() const override { synchronizeDevice(currentDevice()); }
};

// [profiler.stubs.register] PyTorch keeps a pointer, so the object is never destroyed.
[[maybe_unused]] const bool stubs_registered = [] {
  torch::profiler::impl::registerPrivateUse1Methods(new Stubs);
  return true;
}();

// [-]
}  // namespace
}  // namespace openreg
