// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/common/openreg/interface/openreg_kernels.h"
#include "torch_openreg/tests/openreg/captures.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

namespace {

TEST(Kernel, a_kernel_that_throws_fails_the_device_until_it_is_reset) {
  Stream stream;
  std::atomic<bool> ran{false};
  openreg::launch(stream, "divide",
                  [] { throw std::runtime_error("by zero"); });
  openreg::launch(stream, "later", [&] { ran = true; });
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  EXPECT_STREQ(orGetErrorDetail(), "openreg:0 stopped in divide: by zero");
  EXPECT_FALSE(ran);
  EXPECT_EQ(openreg::launch(stream, "refused", [] {}), orErrorLaunchFailure);
  EXPECT_EQ(orDeviceReset(), orSuccess);
  EXPECT_EQ(openreg::launch(stream, "accepted", [&] { ran = true; }),
            orSuccess);
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
  EXPECT_TRUE(ran);
}

// More often than a device has threads. The test of schedules runs it, too.
TEST(Kernel, one_that_ends_its_thread_fails_its_device) {
  Stream stream;
  for (int i = 0; i < 20; ++i) {
    auto owned = std::make_shared<int>(i);
    openreg::launch(stream, "exit", [owned] { pthread_exit(nullptr); });
    openreg::launch(stream, "later", [owned] { *owned = -1; });
    EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
    EXPECT_STREQ(orGetErrorDetail(),
                 "openreg:0 stopped in exit: it ended the thread that ran it");
    EXPECT_EQ(orDeviceReset(), orSuccess);
    EXPECT_EQ(*owned, i);
    EXPECT_EQ(owned.use_count(), 1);
  }
  int ran = 0;
  openreg::launch(stream, "accepted", [&] { ++ran; });
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
  EXPECT_EQ(ran, 1);
}

TEST(Kernel, one_that_ends_its_thread_ends_its_graph) {
  Stream stream, other;
  int ran = 0;
  const Executable exec = executable(stream, [&] {
    Event forked, joined;
    orEventRecord(forked, stream);
    orStreamWaitEvent(other, forked, 0);
    openreg::launch(other, "exit", [] { pthread_exit(nullptr); });
    orEventRecord(joined, other);
    orStreamWaitEvent(stream, joined, 0);
    openreg::launch(stream, "after", [&] { ++ran; });
  });
  EXPECT_EQ(orGraphLaunch(exec, stream), orSuccess);
  EXPECT_EQ(orStreamSynchronize(stream), orErrorLaunchFailure);
  EXPECT_EQ(orDeviceReset(), orSuccess);
  EXPECT_EQ(ran, 0);
}

TEST(Kernel, a_kernel_that_refuses_its_arguments_leaves_the_device_working) {
  Stream stream;
  bool ran = false;
  for (const char* reason : {"3 is not even", "5 is not even"}) {
    openreg::launch(stream, "halve",
                    [reason] { throw openreg::Refusal(reason); });
  }
  EXPECT_EQ(openreg::launch(stream, "later", [&] { ran = true; }), orSuccess);
  EXPECT_EQ(orStreamSynchronize(stream), orErrorKernelRefused);
  EXPECT_STREQ(orGetErrorDetail(),
               "openreg:0 could not run halve: 3 is not even");
  EXPECT_TRUE(ran);
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
}

void refuse(orStream_t stream) {
  openreg::launch(stream, "halve",
                  [] { throw openreg::Refusal("3 is not even"); });
}

// A wait or a query would be told of the refusal.
void passUntold(orStream_t stream) {
  std::atomic<bool> is_passed = false;
  openreg::launch(stream, "pass", [&] { is_passed = true; });
  while (!is_passed) std::this_thread::yield();
}

TEST(Refusal, a_thread_that_waits_for_another_stream_does_not_get_it) {
  Stream stream, other;
  refuse(stream);
  EXPECT_EQ(orStreamSynchronize(other), orSuccess);
  EXPECT_EQ(orStreamSynchronize(stream), orErrorKernelRefused);
}

TEST(Refusal, waiting_for_the_device_is_waiting_for_all_of_its_streams) {
  Stream stream;
  refuse(stream);
  EXPECT_EQ(orDeviceSynchronize(), orErrorKernelRefused);
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
}

TEST(Refusal, a_stream_that_is_destroyed_leaves_it_to_the_device) {
  {
    Stream stream;
    openreg::launch(stream, "halve", [] {
      usleep(20000);
      throw openreg::Refusal("3 is not even");
    });
  }
  EXPECT_EQ(orDeviceSynchronize(), orErrorKernelRefused);
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
}

TEST(Refusal, an_event_takes_it_along) {
  Stream stream;
  Event before, after;
  orEventRecord(before, stream);
  refuse(stream);
  orEventRecord(after, stream);
  EXPECT_EQ(orEventSynchronize(before), orSuccess);
  EXPECT_EQ(orEventSynchronize(after), orErrorKernelRefused);
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
}

TEST(Refusal, a_stream_that_waits_for_the_event_takes_it_over) {
  for (const bool is_complete : {false, true}) {
    Stream stream, reader;
    Event event;
    refuse(stream);
    orEventRecord(event, stream);
    if (is_complete) passUntold(stream);
    orStreamWaitEvent(reader, event, 0);
    EXPECT_EQ(orStreamSynchronize(reader), orErrorKernelRefused);
    EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
  }
}

TEST(Refusal, a_query_that_finds_the_work_done_tells_of_it) {
  Stream stream;
  Event event;
  refuse(stream);
  orEventRecord(event, stream);
  orError_t error;
  while ((error = orStreamQuery(stream)) == orErrorNotReady) {
  }
  EXPECT_EQ(error, orErrorKernelRefused);
  EXPECT_EQ(orStreamQuery(stream), orSuccess);
  refuse(stream);
  orEventRecord(event, stream);
  while ((error = orEventQuery(event)) == orErrorNotReady) {
  }
  EXPECT_EQ(error, orErrorKernelRefused);
  EXPECT_EQ(orEventQuery(event), orSuccess);
}

TEST(Refusal, a_thread_that_leaves_it_does_not_take_it_from_the_others) {
  Stream stream;
  Event event;
  refuse(stream);
  orEventRecord(event, stream);
  std::thread([&] {
    EXPECT_EQ(orLeaveRefusals(1), orSuccess);
    EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
    EXPECT_EQ(orStreamQuery(stream), orSuccess);
    EXPECT_EQ(orEventQuery(event), orSuccess);
    EXPECT_EQ(orEventSynchronize(event), orSuccess);
    EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  }).join();
  EXPECT_EQ(orEventQuery(event), orErrorKernelRefused);
  refuse(stream);
  orLeaveRefusals(0);  // Ends nothing that has not begun.
  for (const int is_on : {1, 1, 0}) {
    orLeaveRefusals(is_on);
    EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
  }
  orLeaveRefusals(0);
  EXPECT_EQ(orStreamSynchronize(stream), orErrorKernelRefused);
}

// What it computes from now on may be wrong, but it is not the one that failed.
TEST(Refusal, a_stream_that_waited_for_a_failed_device_tells_of_it) {
  for (const bool is_complete : {false, true}) {
    Stream reader;
    orSetDevice(1);
    {
      Stream stream;
      Event event;
      // A device that has failed already would refuse to record.
      std::atomic<bool> is_recorded = false;
      openreg::launch(stream, "divide", [&] {
        while (!is_recorded) std::this_thread::yield();
        throw std::runtime_error("by zero");
      });
      EXPECT_EQ(orEventRecord(event, stream), orSuccess);
      is_recorded = true;
      while (is_complete && orEventQuery(event) == orErrorNotReady) {
      }
      EXPECT_EQ(orStreamWaitEvent(reader, event, 0), orSuccess);
      orSetDevice(0);
      bool ran = false;
      openreg::launch(reader, "go on", [&] { ran = true; });
      EXPECT_EQ(orStreamSynchronize(reader), orErrorKernelRefused);
      EXPECT_STREQ(orGetErrorDetail(),
                   "A stream had to wait for another device, and that one "
                   "failed: openreg:1 stopped in divide: by zero");
      EXPECT_TRUE(ran);
      EXPECT_EQ(orStreamSynchronize(reader), orSuccess);
      orSetDevice(1);
    }
    EXPECT_EQ(orDeviceSynchronize(), orErrorLaunchFailure);
    EXPECT_EQ(orDeviceReset(), orSuccess);
    orSetDevice(0);
  }
}

TEST(Refusal, a_stream_in_the_slot_of_a_destroyed_one_begins_without_it) {
  {
    Stream stream;
    refuse(stream);
    passUntold(stream);
  }
  Stream next;
  EXPECT_EQ(orStreamSynchronize(next), orSuccess);
  EXPECT_EQ(orDeviceSynchronize(), orErrorKernelRefused);
}

TEST(Kernel, a_reset_forgets_a_refusal) {
  Stream stream;
  refuse(stream);
  EXPECT_EQ(orDeviceReset(), orSuccess);
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
}

TEST(Kernel, captures_larger_than_a_command_are_carried_too) {
  Stream stream;
  std::array<int, 1000> large{};
  large[999] = 42;
  int seen = 0;
  openreg::launch(stream, "large", [large, &seen] { seen = large[999]; });
  orStreamSynchronize(stream);
  EXPECT_EQ(seen, 42);
}

}  // namespace
