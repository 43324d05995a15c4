// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/streams/stream.h"

#include <c10/core/Event.h>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include <array>
#include <optional>

namespace openreg {
namespace {

// [distributed.timer] DistributedDataParallel measures its passes with the device's clock.
class Timer final : public c10d::Timer {
 public:
  explicit Timer(c10::Device device) : device_(device) {}

  void record(Event moment) override {
    c10d::Timer::record(moment);
    auto& event = events_[static_cast<size_t>(moment)];
    event.emplace(kDeviceType, c10::EventFlag::BACKEND_DEFAULT);
    event->record(currentStream(device_.index()));
  }

  /// In nanoseconds; nothing if one of the two did not happen, or not in this
  /// order: DDP asks for pairs of different passes, too.
  std::optional<int64_t> measureDifference(Event begin, Event end) override {
    const auto& from = events_[static_cast<size_t>(begin)];
    const auto& to = events_[static_cast<size_t>(end)];
    if (!from || !to) return std::nullopt;
    from->synchronize();
    to->synchronize();
    const double milliseconds = from->elapsedTime(*to);
    if (milliseconds < 0) return std::nullopt;
    return static_cast<int64_t>(milliseconds * 1e6);
  }

 private:
  const c10::Device device_;
  std::array<std::optional<c10::Event>, 5> events_;
};

// [distributed.timer.register] Without an entry here, DDP's logged times are missing.
using c10d::RegistererTimerRegistry;
using c10d::TimerRegistry;
C10_REGISTER_TYPED_CLASS(TimerRegistry, kDeviceType, Timer)

// [-]
}  // namespace
}  // namespace openreg
