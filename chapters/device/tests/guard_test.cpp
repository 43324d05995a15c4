// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/chapters/device/memory/tests/held.h"
#include "torch_openreg/chapters/device/tests/words_of.h"
#include "torch_openreg/common/openreg/interface/openreg_graphs.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace {

using openreg::kDeviceType;

TEST(Guard, the_device_is_switched_and_switched_back) {
  {
    c10::DeviceGuard guard({kDeviceType, 1});
    EXPECT_EQ(openreg::currentDevice(), 1);
  }
  EXPECT_EQ(openreg::currentDevice(), 0);
}

TEST(Guard, an_index_that_does_not_exist_is_refused_and_changes_nothing) {
  EXPECT_THROW(c10::DeviceGuard({kDeviceType, 9}), c10::AcceleratorError);
  EXPECT_THROW(openreg::resolveDevice(-2), c10::AcceleratorError);
  EXPECT_EQ(openreg::currentDevice(), 0);
  const c10::impl::VirtualGuardImpl guard(kDeviceType);
  EXPECT_THROW(guard.getDeviceCapability({kDeviceType, 9}), c10::Error);
}

TEST(Guard, the_drivers_limits_are_those_that_the_backend_counts_on) {
  int least, greatest, count;
  openreg::check(orDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT_EQ(least, 0);
  EXPECT_EQ(greatest, openreg::kGreatestPriority);
  openreg::check(orGetDeviceCount(&count));
  EXPECT_EQ(openreg::deviceCount(), count);
  EXPECT_LE(count, openreg::kMaxDevices);
  orDeviceProp properties;
  openreg::check(orGetDeviceProperties(&properties, 0));
  EXPECT_EQ(properties.textureAlignment % 512, 0);  // The allocator's unit.
}

TEST(Guard, minus_one_is_never_echoed_back) {
  EXPECT_EQ(openreg::poolStream(-1, 0).device_index(), 0);
  EXPECT_EQ(openreg::currentStream(-1).device_index(), 0);
}

TEST(Streams, a_stream_of_high_priority_has_the_highest_there_is) {
  const c10::impl::VirtualGuardImpl guard(kDeviceType);
  const c10::Stream stream =
      guard.getStreamFromGlobalPool({kDeviceType, 0}, /*high_priority=*/true);
  int priority = 0, least, greatest;
  orStreamGetPriority(openreg::nativeStream(stream), &priority);
  orDeviceGetStreamPriorityRange(&least, &greatest);
  EXPECT_EQ(priority, greatest);
  const c10::Stream other =
      guard.getStreamFromGlobalPool({kDeviceType, 0}, /*high_priority=*/false);
  orStreamGetPriority(openreg::nativeStream(other), &priority);
  EXPECT_EQ(priority, least);
}

// PyTorch's class looks first, but the interface is open to everybody.
TEST(Streams, an_event_that_was_never_recorded_is_reached) {
  const c10::impl::VirtualGuardImpl guard(kDeviceType);
  guard.block(nullptr, openreg::poolStream(0, 0));
  EXPECT_TRUE(guard.queryEvent(nullptr));
  guard.synchronizeEvent(nullptr);
  guard.destroyEvent(nullptr, 0);
}

TEST(Streams, a_stream_and_its_event_are_not_ready_while_work_is_left) {
  const c10::Stream stream = openreg::poolStream(0, 0);
  Gate held(stream);
  c10::Event event(kDeviceType);
  EXPECT_TRUE(event.query()) << "it was never recorded";
  event.record(stream);
  EXPECT_FALSE(stream.query());
  EXPECT_FALSE(event.query());
  held.open();
  EXPECT_TRUE(stream.query());
  EXPECT_TRUE(event.query());
}

TEST(Streams, a_refusal_that_a_destructor_meets_is_left_for_the_next_wait) {
  orStream_t handle;
  openreg::check(orStreamCreate(&handle));
  const c10::Stream stream = openreg::streamOfHandle(handle, 0);
  openreg::launch(handle, "refuses", [] {
    usleep(50'000);
    throw openreg::Refusal("such numbers");
  });
  openreg::check(orStreamDestroy(handle));
  // No event can be recorded there, so this waits for the device.
  EXPECT_TRUE(openreg::isReached(openreg::eventIn(stream)));
  openreg::launch(nullptr, "refuses, too",
                  [] { throw openreg::Refusal("others"); });
  EXPECT_TRUE(openreg::isReached(openreg::eventIn(stream)));
  const c10::Stream idle = openreg::poolStream(0, 0);
  EXPECT_NO_THROW(idle.synchronize()) << "it waits for neither";
  std::set<std::string> said;  // Streams are asked in no particular order.
  for (int i = 0; i < 2; ++i)
    said.insert(wordsOf([] { openreg::synchronizeDevice(0); }));
  EXPECT_EQ(said, (std::set<std::string>{
                      "openreg:0 could not run refuses: such numbers",
                      "openreg:0 could not run refuses, too: others"}));
  EXPECT_NO_THROW(openreg::synchronizeDevice(0));
}

TEST(Streams, a_wait_that_neither_an_event_nor_the_host_can_make_is_refused) {
  orStream_t handle, captured;
  openreg::check(orStreamCreate(&captured));
  openreg::check(orStreamCreate(&handle));
  const c10::Stream gone = openreg::streamOfHandle(handle, 0);
  openreg::check(orStreamDestroy(handle));
  const c10::Stream waiting = openreg::defaultStream(0);
  EXPECT_NO_THROW(openreg::waitForStream(waiting, gone)) << "the host waits";
  openreg::check(orStreamBeginCapture(captured, orStreamCaptureModeGlobal));
  expectError<c10::Error>(
      "where no event can be recorded, and the host must not wait; end the "
      "capture first.",
      [&] { openreg::waitForStream(waiting, gone); });
  orGraph_t graph;
  EXPECT_EQ(orStreamEndCapture(captured, &graph),
            orErrorStreamCaptureInvalidated);
  openreg::check(orStreamDestroy(captured));
}

TEST(Streams, a_stream_guard_switches_device_and_stream) {
  const c10::Stream stream = openreg::poolStream(1, 0);
  {
    c10::StreamGuard guard(stream);
    EXPECT_EQ(openreg::currentDevice(), 1);
    EXPECT_EQ(openreg::currentStream(1), stream);
  }
  EXPECT_EQ(openreg::currentDevice(), 0);
  EXPECT_EQ(openreg::currentStream(1), openreg::defaultStream(1));
}

}  // namespace
