// SPDX-License-Identifier: BSD-3-Clause
#include "torch_openreg/tests/openreg/streams.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace {

TEST(Stream, commands_run_in_order) {
  Stream stream;
  std::vector<int> seen;
  for (int i = 0; i < 1000; ++i) {
    enqueue(stream, [&seen, i] { seen.push_back(i); });
  }
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
  ASSERT_EQ(seen.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen[i], i);
}

TEST(Stream, commands_of_several_producers_all_run) {
  Stream stream;
  std::atomic<int> count{0};
  std::vector<std::thread> producers;
  for (int p = 0; p < 4; ++p) {
    producers.emplace_back([&] {
      for (int i = 0; i < 2500; ++i) enqueue(stream, [&] { ++count; });
    });
  }
  for (auto& producer : producers) producer.join();
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
  EXPECT_EQ(count, 10000);
}

TEST(Stream, a_launch_does_not_wait) {
  Stream stream;
  std::atomic<bool> go{false}, ran{false};
  enqueue(stream, [&] {
    while (!go) usleep(10);
    ran = true;
  });
  EXPECT_FALSE(ran);
  EXPECT_EQ(orStreamQuery(stream), orErrorNotReady);
  go = true;
  EXPECT_EQ(orStreamSynchronize(stream), orSuccess);
  EXPECT_TRUE(ran);
}

TEST(Stream, a_stream_that_runs_its_commands_is_not_captured) {
  Stream stream;
  orStreamCaptureStatus status = orStreamCaptureStatusActive;
  EXPECT_EQ(orStreamIsCapturing(stream, &status), orSuccess);
  EXPECT_EQ(status, orStreamCaptureStatusNone);
}

TEST(Stream, a_thousand_streams_share_the_threads) {
  std::vector<Stream> streams(1000);
  std::atomic<int> count{0};
  for (auto& stream : streams) enqueue(stream, [&] { ++count; });
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  EXPECT_EQ(count, 1000);
}

TEST(Stream, a_destroyed_stream_finishes_its_work) {
  orStream_t stream;
  orStreamCreate(&stream);
  std::atomic<bool> ran{false};
  enqueue(stream, [&] {
    usleep(5000);
    ran = true;
  });
  EXPECT_EQ(orStreamDestroy(stream), orSuccess);
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
  EXPECT_TRUE(ran);
}

TEST(Stream, what_is_not_allowed_is_refused) {
  int count;
  orGetDeviceCount(&count);
  EXPECT_EQ(orSetDevice(count), orErrorInvalidDevice);
  EXPECT_EQ(orPeekAtLastError(), orErrorInvalidDevice);
  EXPECT_EQ(orGetLastError(), orErrorInvalidDevice);
  EXPECT_EQ(orGetLastError(), orSuccess);
}

TEST(Stream, the_default_stream_cannot_be_destroyed_by_its_handle_either) {
  orStream_t standard;
  orDeviceGetDefaultStream(&standard, 0);
  EXPECT_EQ(orStreamDestroy(standard), orErrorInvalidResourceHandle);
  EXPECT_EQ(enqueue(nullptr, [] {}), orSuccess);
  EXPECT_EQ(orDeviceSynchronize(), orSuccess);
}

/// Waits about as long as a thread of the device stays with an empty stream.
void waitUntilItLeaves(int attempt) {
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::nanoseconds(45000 + 10 * (attempt % 1500));
  while (std::chrono::steady_clock::now() < end) continue;
}

TEST(Stream, no_command_is_overlooked_by_a_thread_that_leaves) {
  int count = 0;
  for (int i = 0; i < 8000; ++i) {
    enqueue(nullptr, [&] { ++count; });
    waitUntilItLeaves(i);
  }
  ASSERT_TRUE(eventually([] { return orStreamQuery(nullptr) == orSuccess; }));
  EXPECT_EQ(count, 8000);
}

TEST(Stream, nor_is_the_last_one_of_a_stream_that_is_destroyed) {
  std::atomic<int> count{0};
  for (int i = 0; i < 4000; ++i) {
    Stream stream;
    enqueue(stream, [&] { ++count; });
    waitUntilItLeaves(i);
    enqueue(stream, [&] { ++count; });
  }
  EXPECT_TRUE(eventually([&] { return count >= 8000; }));
  EXPECT_EQ(count, 8000);
}

int deviceCount() {
  int count = 0;
  EXPECT_EQ(orGetDeviceCount(&count), orSuccess);
  return count;
}

TEST(Stream, streams_come_and_go_while_their_commands_run) {
  std::atomic<int> count{0};
  const int devices = deviceCount();
  std::vector<std::thread> hosts;
  for (int host = 0; host < 4; ++host) {
    hosts.emplace_back([&count, host, devices] {
      orSetDevice(host % devices);
      for (int i = 0; i < 1000; ++i) {
        Stream stream;
        for (int command = 0; command < i % 4; ++command)
          enqueue(stream, [&] { ++count; });
        if (i % 3 == 0) orStreamSynchronize(stream);
      }
      orDeviceSynchronize();
    });
  }
  for (auto& host : hosts) host.join();
  EXPECT_EQ(count, 4 * 1500);
}

TEST(Stream, a_created_stream_is_not_the_default_one) {
  Stream stream;
  orStream_t standard;
  ASSERT_EQ(orDeviceGetDefaultStream(&standard, 0), orSuccess);
  EXPECT_NE(stream.handle, standard);
  EXPECT_NE(stream.handle, nullptr);
}

TEST(Stream, a_function_of_the_host_runs_in_its_place) {
  int seen = 0;
  const auto set = [](void* data) { *static_cast<int*>(data) = 5; };
  EXPECT_EQ(orLaunchHostFunc(nullptr, set, &seen), orSuccess);
  orStreamSynchronize(nullptr);
  EXPECT_EQ(seen, 5);
}

TEST(Stream, a_function_of_the_host_cannot_wait_for_the_device) {
  struct Found {
    orError_t device, stream;
  } found{};
  orLaunchHostFunc(
      nullptr,
      [](void* data) {
        *static_cast<Found*>(data) = {orDeviceSynchronize(),
                                      orStreamSynchronize(nullptr)};
      },
      &found);
  EXPECT_EQ(orStreamSynchronize(nullptr), orSuccess);
  EXPECT_EQ(found.device, orErrorNotPermitted);
  EXPECT_EQ(found.stream, orErrorNotPermitted);
}

TEST(Stream, a_priority_is_clamped_to_the_range) {
  int least, greatest, low, high;
  ASSERT_EQ(orDeviceGetStreamPriorityRange(&least, &greatest), orSuccess);
  Stream lowest(least + 5), highest(greatest - 5);
  EXPECT_EQ(orStreamGetPriority(lowest, &low), orSuccess);
  EXPECT_EQ(orStreamGetPriority(highest, &high), orSuccess);
  EXPECT_EQ(low, least);
  EXPECT_EQ(high, greatest);
}

TEST(Stream, a_reset_of_the_device_waits_for_its_work) {
  Stream stream;
  std::atomic<bool> ran{false};
  enqueue(stream, [&] {
    usleep(5000);
    ran = true;
  });
  EXPECT_EQ(orDeviceReset(), orSuccess);
  EXPECT_TRUE(ran);
}

TEST(Device, one_that_does_not_exist_is_refused_by_number) {
  const std::string there_are = std::to_string(deviceCount());
  const std::string refused = "openreg:1000 does not exist; this machine has " +
                              there_are + " openreg devices, numbered from 0.";
  EXPECT_EQ(orSetDevice(1000), orErrorInvalidDevice);
  EXPECT_EQ(orGetErrorDetail(), refused) << "See refuseDevice in failure.h.";
}

TEST(Device, it_says_how_much_memory_it_has) {
  orDeviceProp properties;
  const int last = deviceCount() - 1;
  EXPECT_EQ(orGetDeviceProperties(&properties, last), orSuccess);
  orSetDevice(last);
  size_t free, total;
  orMemGetInfo(&free, &total);
  orSetDevice(0);
  EXPECT_EQ(properties.totalGlobalMem, total);
}

}  // namespace
