// SPDX-License-Identifier: BSD-3-Clause
// What a driver with two devices promises beside the other claims.
#include "torch_openreg/tests/openreg/allocate.h"
#include "torch_openreg/tests/openreg/streams.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace {

TEST(TwoDevices, devices_wait_for_each_other) {
  Stream a;
  Event event;
  std::atomic<int> value{0};
  enqueue(a, [&] {
    usleep(5000);
    value = 1;
  });
  orEventRecord(event, a);
  orSetDevice(1);
  Stream b;
  orStreamWaitEvent(b, event, 0);
  int seen = -1;
  enqueue(b, [&] { seen = value; });
  orStreamSynchronize(b);
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(orEventRecord(event, b), orErrorInvalidValue);
  orSetDevice(0);
}

TEST(TwoDevices, freeing_waits_for_another_devices_copy) {
  void *here = allocate(4096), *there;
  orMemset(here, 7, 4096);
  orSetDevice(1);
  there = allocate(4096);
  enqueue(nullptr, [] { usleep(20000); });
  orMemcpyPeerAsync(there, 1, here, 0, 4096, nullptr);
  orSetDevice(0);
  EXPECT_EQ(orFree(here), orSuccess);
  char out[4096];
  orMemcpy(out, there, 4096, orMemcpyDeviceToHost);
  EXPECT_EQ(out[4095], 7);
  orFree(there);
}

TEST(TwoDevices, each_thread_has_a_current_device_of_its_own) {
  orSetDevice(1);
  int there = -1, here = -1;
  std::thread([&] {
    orGetDevice(&there);
    orSetDevice(0);
  }).join();
  orGetDevice(&here);
  orSetDevice(0);
  EXPECT_EQ(there, 0);
  EXPECT_EQ(here, 1);
}

TEST(TwoDevices, peers_are_checked) {
  void *here, *there;
  orMalloc(&here, 64);
  orSetDevice(1);
  orMalloc(&there, 64);
  orSetDevice(0);
  orMemset(here, 3, 64);
  EXPECT_EQ(orMemcpyPeerAsync(there, 1, here, 0, 64, nullptr), orSuccess);
  char out[64];
  orMemcpy(out, there, 64, orMemcpyDeviceToHost);
  EXPECT_EQ(out[63], 3);
  EXPECT_EQ(orMemcpyPeerAsync(there, 0, here, 0, 64, nullptr),
            orErrorInvalidValue);
  orFree(here);
  orFree(there);
}

TEST(TwoDevices, waiting_for_all_streams_is_not_confused_by_a_destroyed_one) {
  std::atomic<bool> go{false}, has_waited{false};
  Stream held;
  orStream_t idle;
  orStreamCreate(&idle);
  enqueue(held, until(go));
  std::thread waiter([&] {
    orDeviceSynchronize();
    has_waited = true;
  });
  usleep(5000);
  orStreamDestroy(idle);
  orSetDevice(1);
  {
    // One of them is in the destroyed one's place, on another device.
    std::vector<Stream> others(64);
    std::atomic<bool> stay{true};
    for (Stream& other : others)
      enqueue(other, [&] {
        while (stay) usleep(10);
      });
    go = true;
    EXPECT_TRUE(eventually([&] { return has_waited.load(); }));
    stay = false;
    waiter.join();
    for (Stream& other : others) orStreamSynchronize(other);
  }
  orSetDevice(0);
}

TEST(TwoDevices, a_copy_names_the_device_of_each_side) {
  void* here = allocate(100);
  EXPECT_EQ(orMemcpyPeerAsync(here, 1, here, 0, 1, nullptr),
            orErrorInvalidValue);
  EXPECT_EQ(orMemcpyPeerAsync(here, 0, here, 1, 1, nullptr),
            orErrorInvalidValue);
  orFree(here);
}

TEST(TwoDevices, there_is_no_time_between_their_events) {
  Event here, there;
  orEventRecord(here, nullptr);
  orSetDevice(1);
  orEventRecord(there, nullptr);
  orSetDevice(0);
  orEventSynchronize(here);
  orEventSynchronize(there);
  float ms;
  EXPECT_EQ(orEventElapsedTime(&ms, here, there), orErrorInvalidValue);
  const std::string refused =
      "The events were recorded on openreg:0 and openreg:1; there is a time "
      "only between two events of one device.";
  EXPECT_EQ(orGetErrorDetail(), refused)
      << "See refuseTimeBetween in failure.h.";
}

}  // namespace
