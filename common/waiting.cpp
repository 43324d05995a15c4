// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/waiting.h"
#include "torch_openreg/common/openreg/interface/openreg_tools.h"

#include <algorithm>
#include <exception>
#include <thread>

namespace openreg {

// [common.waiting.socket] Without Python there is no lock to release.
static constinit Gil gil{[]() -> void* { return nullptr; }, [](void*) {},
                         [] {}};

void setGil(Gil functions) { gil = functions; }

WithoutGil::WithoutGil() : thread_(gil.release()) {}

WithoutGil::~WithoutGil() {
  if (thread_) gil.take(thread_);
}

// [common.waiting.untold.say] A driver whose kernels refuse nothing has nothing to leave.
LeavesRefusals::LeavesRefusals() { orLeaveRefusals(1); }

LeavesRefusals::~LeavesRefusals() { orLeaveRefusals(0); }

// [common.waiting.callback] While the driver waits, it calls us back, and what a handler raised ends the wait.
static constexpr std::chrono::nanoseconds kBetweenLooks(100'000'000);

static int runSignalHandlers(void* raised) noexcept try {
  gil.run_signal_handlers();
  return 0;
} catch (...) {
  *static_cast<std::exception_ptr*>(raised) = std::current_exception();
  return 1;
}

orError_t waitInterruptibly(c10::function_ref<orError_t()> wait) {
  WithoutGil others_run;
  std::exception_ptr raised;
  if (orSetWaitCallback(kBetweenLooks.count(), &runSignalHandlers, &raised))
    return wait();
  const orError_t error = [&] {
    const struct Ended {  // `wait` may throw.
      ~Ended() { orSetWaitCallback(0, nullptr, nullptr); }
    } ended;
    return wait();
  }();
  if (raised) std::rethrow_exception(raised);
  return error;
}

void pollInterruptibly(c10::function_ref<bool()> is_done,
                       std::chrono::microseconds longest) {
  WithoutGil others_run;
  using Clock = std::chrono::steady_clock;
  auto looked = Clock::now();
  std::chrono::microseconds pause(20);
  while (!is_done()) {
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, longest);
    if (Clock::now() - looked < kBetweenLooks) continue;
    gil.run_signal_handlers();
    looked = Clock::now();
  }
}

// [-]
}  // namespace openreg
